"""k-centre greedy, three plain ways."""

from __future__ import annotations

import torch
from torch import Tensor


def k_centre_plain(pool: Tensor, first_centres: Tensor, k: int) -> list[int]:
    """The definition of `mqnet.numerics.kcentre`, one float64 difference at a time: the picks every form must make."""
    x = pool.double()
    nearest = torch.full((len(x),), torch.inf)
    for centre in first_centres.double():
        nearest = torch.minimum(nearest, (x - centre).square().sum(1).float())
    picks: list[int] = []
    for _ in range(min(k, len(x))):
        row = int(nearest.numpy().argmax())  # numpy's argmax is the first among equals
        picks.append(row)
        nearest = torch.minimum(nearest, (x - x[row]).square().sum(1).float())
        nearest[picks] = -1.0
    return picks


def k_centre_common(pool: Tensor, first_centres: Tensor, k: int) -> list[int]:
    """The common loop: default `torch.cdist` of the last pick against the pool, stacked minimum."""
    nearest = torch.full((len(pool),), torch.inf)
    for start in range(0, len(first_centres), 64):
        nearest = torch.minimum(nearest, torch.cdist(pool, first_centres[start : start + 64]).min(1).values)
    picks: list[int] = []
    for _ in range(k):
        row = int(torch.argmax(nearest))
        picks.append(row)
        distance = torch.cdist(pool, pool[row : row + 1])
        nearest = torch.min(torch.cat([nearest[:, None], distance], 1), 1).values
    return picks


def k_centre_matvec(pool: Tensor, first_centres: Tensor, k: int) -> list[int]:
    """Cached norms and one float32 matrix-vector product per pick: the best form that reads the pool at every pick."""
    norms = pool.square().sum(1)
    nearest = torch.full((len(pool),), torch.inf)
    for centre in first_centres:
        nearest = torch.minimum(nearest, norms + centre.square().sum() - 2.0 * (pool @ centre))
    picks: list[int] = []
    for _ in range(k):
        row = int(torch.argmax(nearest))
        picks.append(row)
        nearest = torch.minimum(nearest, norms + norms[row] - 2.0 * (pool @ pool[row]))
        nearest[row] = -1.0
    return picks
