"""Standardised scores: the mean and deviation of a round, fitted once and applied alike to every item."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scaler:
    """Mean and standard deviation [d] of a round's scores, and the bound their z-scores are clipped to."""

    mean: Tensor
    std: Tensor
    clip: float

    @classmethod
    def fit(cls, scores: Tensor, *, clip: float = 4.0) -> Scaler:
        """Fit to scores [N, d]. A constant column gets deviation 0, which `z` turns into zeros."""
        if len(scores) == 0:
            zeros = torch.zeros(scores.shape[1], dtype=torch.float64)
            return cls(zeros, zeros, clip)
        exact = scores.double()  # a float32 variance of a large, nearly constant column is mostly rounding
        mean = exact.mean(0)
        std = (exact - mean).square().mean(0).sqrt()
        # rounding of the mean leaves a constant column a deviation of about 1e-17 of its size: treat it as zero
        return cls(mean, torch.where(std <= 1e-12 * mean.abs().clamp_min(1e-300), 0.0, std), clip)

    def unclipped(self, scores: Tensor) -> Tensor:
        """z-scores [N, d] in float32, 0 where the column is constant."""
        safe = torch.where(self.std > 0, self.std, 1.0)
        return torch.where(self.std > 0, (scores.double() - self.mean) / safe, 0.0).float()

    def z(self, scores: Tensor) -> Tensor:
        """z-scores [N, d] clipped to [-clip, clip], so that no outlier decides a round."""
        return self.unclipped(scores).clamp(-self.clip, self.clip)
