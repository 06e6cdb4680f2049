"""Learning loss on a net's stages (Yoo and Kweon 2019): a branch that predicts the target loss of an item."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mqnet.models.head import LOSS_MARGIN
from mqnet.models.resnet import Features, pooled, quiet_start

BRANCH_UNITS = 128


class LossBranch(nn.Module):
    """`v . [relu(A_1 gap(block_1) + a_1), ..., relu(A_m gap(block_m) + a_m)] + b`: one number [n] per item, float32."""

    def __init__(self, widths: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        with quiet_start():
            self.inner = nn.ModuleList([nn.Linear(width, BRANCH_UNITS) for width in widths])
            self.outer = nn.Linear(BRANCH_UNITS * len(widths), 1)
        for layer in (*self.inner, self.outer):
            start_linear(layer, generator)

    def forward(self, features: Features) -> Tensor:
        """From the outputs of the stages, detached by the caller where the net must not feel it."""
        means = [pooled(block) for block in features.blocks]
        hidden = [torch.relu(layer(mean)) for layer, mean in zip(self.inner, means, strict=True)]
        return self.outer(torch.cat(hidden, dim=1)).squeeze(1)


def start_linear(layer: nn.Module, generator: torch.Generator) -> None:
    """Weights and biases uniform in +-1/sqrt(inputs), PyTorch's usual start, from a generator."""
    assert isinstance(layer, nn.Linear)
    bound = 1.0 / math.sqrt(layer.in_features)
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.uniform_(-bound, bound, generator=generator)


def loss_ranking(predicted: Tensor, losses: Tensor, margin: float = LOSS_MARGIN) -> Tensor:
    """Mean over pairs (i, i + n/2) of `max(0, margin - sign(l_i - l_j) (p_i - p_j))`; a scalar.

    A tied pair has the sign 0 and teaches nothing; with an odd n the last item has no partner. The true losses [n] are
    targets: no gradient goes through them.
    """
    half = len(losses) // 2
    target = losses.detach()
    sign = torch.sign(target[:half] - target[half : 2 * half])
    short = margin - sign * (predicted[:half] - predicted[half : 2 * half])
    return short.clamp_min(0.0).sum() / max(half, 1)
