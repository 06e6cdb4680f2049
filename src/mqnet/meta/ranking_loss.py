"""Pairwise ranking losses on meta-scores: which pairs, what each costs, and its slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

RankingLoss = Literal["logistic", "hinge", "printed"]
MARGIN = 0.1  # eta


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows: `high` [m] should score above `low` [m]; `as_drawn` [m]: the pair was drawn high first."""

    high: Tensor
    low: Tensor
    as_drawn: Tensor

    def __len__(self) -> int:
        return len(self.high)


def all_pairs(target: Tensor, at_most: int, generator: torch.Generator, *, oriented: bool = False) -> Pairs:
    """Every pair of rows whose targets differ, once; a random sample of `at_most` where there are more.

    Equal targets, two OOD items above all, make no pair. `oriented` pairs are drawn high or low first by chance, which
    the printed loss looks at. Memory O(n^2) bits for the comparison, then O(m).
    """
    high, low = (target[:, None] > target[None, :]).nonzero(as_tuple=True)
    if len(high) > at_most:
        kept = torch.randperm(len(high), generator=generator)[:at_most]
        high, low = high[kept], low[kept]
    first = torch.rand(len(high), generator=generator) < 0.5 if oriented else torch.ones(len(high), dtype=torch.bool)
    return Pairs(high, low, first)


def drawn_pairs(target: Tensor, rows: Tensor, *, order_ties: bool) -> Pairs:
    """The i-th of `rows` with the (M + i)-th, as the paper draws its batches.

    Ties are dropped; `order_ties` keeps them as if the first of the pair were higher, as the released code does.
    """
    half = len(rows) // 2
    first, second = rows[:half], rows[half : 2 * half]
    sign = torch.sign(target[first] - target[second])
    if order_ties:
        sign = torch.where(sign == 0, 1.0, sign)
    used = sign != 0
    first, second, ahead = first[used], second[used], sign[used] > 0
    return Pairs(torch.where(ahead, first, second), torch.where(ahead, second, first), ahead)


def pair_loss(gap: Tensor, pairs: Pairs, loss: RankingLoss, margin: float) -> tuple[Tensor, Tensor]:
    """Each pair's loss [m] and its slope [m] in `gap` = Phi_high - Phi_low [m].

    `logistic` log(1 + exp(-gap)); `hinge` max(0, eta - gap); `printed` is the paper's equation as it stands,
    max(0, -s (Phi_i - Phi_j + eta)): for a pair drawn high first max(0, -gap - eta), its margin working against it, and
    max(0, eta - gap) for one drawn low first.
    """
    if loss == "logistic":
        return torch.nn.functional.softplus(-gap), -torch.sigmoid(-gap)
    against = pairs.as_drawn.to(gap.dtype) if loss == "printed" else torch.zeros_like(gap)
    short = (margin - 2.0 * margin * against - gap).clamp_min(0.0)
    return short, -(short > 0).to(gap.dtype)


def loss_and_pull(phi: Tensor, pairs: Pairs, loss: RankingLoss, margin: float) -> tuple[Tensor, Tensor]:
    """The mean loss [] over pairs and its gradient [n] with respect to `phi` [n]."""
    value, slope = pair_loss(phi[pairs.high] - phi[pairs.low], pairs, loss, margin)
    pull = torch.zeros_like(phi).index_add_(0, pairs.high, slope).index_add_(0, pairs.low, slope, alpha=-1)
    return value.sum() / max(len(pairs), 1), pull / max(len(pairs), 1)


def n_pairs(target: Tensor) -> int:
    """How many pairs of a query set say anything: those with different targets."""
    _, counts = target.unique(return_counts=True)
    n = len(target)
    return (n * n - int(counts.square().sum())) // 2
