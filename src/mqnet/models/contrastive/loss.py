"""What a contrastive coder minimises: NT-Xent over pairs of views, and how well rotations are told apart."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def nt_xent(views: Tensor, temperature: float = 0.5) -> Tensor:
    """The normalised temperature-scaled cross-entropy [] of views [2 n, d]; row i and row i + n are a pair.

    Mean over rows of `-log(exp(s_ip / T) / sum_{j != i} exp(s_ij / T))`, s the cosine, p the row's partner
    (Chen et al. 2020). Every other row is a negative. At least float32, whatever the views are.
    """
    unit = functional.normalize(views if views.dtype == torch.float64 else views.float(), dim=1)
    logits = (unit @ unit.T / temperature).fill_diagonal_(float("-inf"))
    partner = torch.arange(len(views), device=views.device).roll(len(views) // 2)
    return functional.cross_entropy(logits, partner)


def rotation_labels(n: int, device: torch.device | None = None) -> Tensor:
    """Quarter turns [8 n] of two views of `all_rotations` of n images: 0, 1, 2, 3 in blocks of n, and again."""
    return torch.arange(4, device=device).repeat_interleave(n).repeat(2)
