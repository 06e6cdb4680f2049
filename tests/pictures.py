"""Small pictures a small net tells apart in seconds: stripes of a class's own direction, width and tint, in noise."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def pictures(labels: list[int] | np.ndarray, *, size: int = 16, noise: float = 30.0, seed: int = 0) -> Tensor:
    """uint8 [n, 3, size, size]; any class number is a texture of its own."""
    generator = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    out = torch.empty(len(labels), 3, size, size)
    for i, label in enumerate(int(label) for label in labels):
        angle, phase = 2.4 * label, float(torch.rand((), generator=generator)) * 6.28
        wave = torch.sin((math.cos(angle) * x + math.sin(angle) * y) * (0.7 + 0.2 * (label % 3)) + phase)
        tint = torch.tensor([1.0, 0.4 + 0.3 * (label % 2), 0.2 + 0.2 * (label % 4)])
        out[i] = 127.0 + 60.0 * tint[:, None, None] * wave
    return (out + noise * torch.randn(out.shape, generator=generator)).clamp(0, 255).byte()
