"""What an item is expected to be worth, and what it is expected to cost."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

FLOOR = 1e-6
"""The least informativeness, as a share of its range: its logarithm must exist for the pool's least item."""


def log_value(log_odds: Tensor, informativeness: Tensor, pool: Tensor | None = None) -> Tensor:
    """`log(P(known) * I)` [N] from log-odds of being known, and informativeness as its place in the pool's range.

    Non-decreasing in both, so a monotone score of (P, I, value) is a monotone score of (P, I).
    """
    return logsigmoid(log_odds.double()) + log_informativeness(informativeness, pool)


def log_informativeness(informativeness: Tensor, pool: Tensor | None = None) -> Tensor:
    """`log((I - min) / (max - min))` [N] over the range of `pool` (by default I itself), floored at one millionth.

    Zeros where the range is empty.
    """
    exact, over = informativeness.double(), (informativeness if pool is None else pool).double()
    if len(over) == 0 or not over.max() > over.min():
        return torch.zeros_like(exact)
    return ((exact - over.min()) / (over.max() - over.min())).clamp(FLOOR, 1.0).log()


def onto_scale(scores: Tensor, scale: Tensor) -> Tensor:
    """The order of `scores` [N] with the values of `scale` [N]: the largest score takes the largest value, and so on.

    Equal scores share the mean of their values: items that nobody can tell apart have the same odds. A ranking net is
    known up to a monotone map only; this is the map onto a scale on which differences mean something.
    """
    ordered, places = torch.sort(scores, stable=True)
    _, group, n_equal = torch.unique_consecutive(ordered, return_inverse=True, return_counts=True)
    mean = torch.zeros(len(n_equal), dtype=scale.dtype).index_add_(0, group, torch.sort(scale).values) / n_equal
    out = torch.empty_like(scale)
    out[places] = mean[group]
    return out


def log_cost(probability: Tensor, cost_ratio: float) -> Tensor:
    """`log(P + c (1 - P))` [N]: the logarithm of the expected cost in units of c_IN, with c = c_OOD / c_IN."""
    return (probability + cost_ratio * (1.0 - probability)).log()


def calibrate(log_odds: Tensor, is_known: Tensor, ridge: tuple[float, float] = (1.0, 1.0)) -> tuple[float, float]:
    """Slope and offset (a, b) of `P(known) = sigmoid(a s + b)`, fitted to answered items that the score had not seen.

    Platt's logistic fit by Newton's method with a ridge towards (1, 0): few answers leave the score as it is. The slope
    is kept positive: calibration never turns the order around.
    """
    s, y = log_odds.double(), is_known.double()
    design = torch.stack([s, torch.ones_like(s)], dim=1)
    prior, pull = torch.tensor([1.0, 0.0], dtype=torch.float64), torch.tensor(ridge, dtype=torch.float64)

    def objective(weights: Tensor) -> float:
        z = design @ weights
        return float((softplus(z) - y * z).sum() + 0.5 * (pull * (weights - prior).square()).sum())

    weights = prior.clone()
    for _ in range(50):
        p = torch.sigmoid(design @ weights)
        gradient = design.T @ (p - y) + pull * (weights - prior)
        hessian = (design.T * (p * (1 - p))) @ design + pull.diag()
        step, now = torch.linalg.solve(hessian, gradient), objective(weights)
        # far from the minimum a whole Newton step overshoots: halve it until it goes down
        size = next((t for t in (0.5**i for i in range(30)) if objective(weights - t * step) < now), 0.0)
        weights = weights - size * step
        if size == 0.0 or float(step.abs().max()) < 1e-9:
            break
    return max(float(weights[0]), 1e-3), float(weights[1])
