"""Layer-wise adaptive rates (You et al. 2017), the optimiser for contrastive training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

EPSILON = 1e-8


class Lars:
    """SGD with momentum whose step is scaled, tensor by tensor, to a share of the weights' norm.

    `g' = g + decay w`, `local = trust |w| / (|g| + decay |w| + eps)` for matrices and kernels (1 where one is 0);
    biases and normalisation, tensors of one dimension, have neither decay nor a local rate. Then
    `v = momentum v + rate local g'` and `w = w - v`. Nothing is read back to the host: a GPU is never waited for.
    """

    def __init__(
        self, weights: Sequence[Tensor], *, trust: float = 1e-3, momentum: float = 0.9, weight_decay: float = 1e-6
    ) -> None:
        self.weights = list(weights)
        self.trust, self.momentum, self.weight_decay = trust, momentum, weight_decay
        self.velocity = [torch.zeros_like(weight) for weight in self.weights]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Move the weights by one step at this rate."""
        for weight, gradient, velocity in zip(self.weights, gradients, self.velocity, strict=True):
            if weight.ndim > 1:
                gradient = gradient.add(weight, alpha=self.weight_decay).mul_(self._local(weight, gradient))
            velocity.mul_(self.momentum).add_(gradient, alpha=rate)
            weight.sub_(velocity)

    def _local(self, weight: Tensor, gradient: Tensor) -> Tensor:
        w, g = weight.norm(), gradient.norm()
        local = self.trust * w / (g + self.weight_decay * w + EPSILON)
        return torch.where((w > 0) & (g > 0), local, torch.ones_like(local))
