"""k-means++ seeding on materialised gradient embeddings: definition, common loop, best matrix-vector form."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import rv_discrete
from sklearn.metrics import pairwise_distances
from torch import Tensor

from mqnet.numerics.kmeanspp import REFRESH_PICKS, REFRESH_REJECTIONS, SAME


def embed(a: Tensor, h: Tensor) -> Tensor:
    """The [N, K d] embeddings that the fast form never builds."""
    return (a[:, :, None] * h[:, None, :]).flatten(1)


def k_means_plus_plus_plain(a: Tensor, h: Tensor, k: int, generator: torch.Generator) -> list[int]:
    """The definition of `mqnet.numerics.kmeanspp`: full weights after every pick, frozen ones only to draw from."""
    g = embed(a.double(), h.double())
    squares = g.square().sum(1)

    def distances(row: int) -> Tensor:
        d2 = (g - g[row]).square().sum(1)
        return torch.where(d2 < SAME * (squares + squares[row]), 0.0, d2)

    if k == 0 or not len(g):
        return []
    picks = [int(squares.float().numpy().argmax())]
    now = distances(picks[0])
    frozen, n_frozen_picks, n_rejected = now.clone(), 0, 0
    while len(picks) < min(k, len(g)):
        if n_frozen_picks == REFRESH_PICKS or n_rejected == REFRESH_REJECTIONS:
            frozen, n_frozen_picks, n_rejected = now.clone(), 0, 0
        frozen_or_taken = frozen.clone()
        if frozen_or_taken.sum() == 0:
            picks.append(min(set(range(len(g))) - set(picks)))
            continue
        place, chance = torch.rand(2, dtype=torch.float64, generator=generator).tolist()
        cumulated = frozen_or_taken.cumsum(0)
        row = int((cumulated <= place * cumulated[-1]).sum())
        row = min(row, int(frozen_or_taken.nonzero()[-1]))
        if chance * frozen[row] < now[row] and row not in picks:
            picks.append(row)
            now = torch.minimum(now, distances(row))
            now[row] = 0.0
            n_frozen_picks += 1
        else:
            n_rejected += 1
    return picks


def k_means_plus_plus_common(g: np.ndarray, k: int, seed: int) -> list[int]:
    """The common loop: distances to the newest centre, a Python minimum per item, a discrete random variable."""
    picks = [int(np.argmax(np.linalg.norm(g, axis=1)))]
    nearest = pairwise_distances(g, g[picks[-1:]]).ravel().astype(float)
    state = np.random.RandomState(seed)
    while len(picks) < k:
        weights = nearest**2 / np.sum(nearest**2)
        law = rv_discrete(values=(np.arange(len(g)), weights))
        row = int(law.rvs(size=1, random_state=state)[0])
        while row in picks:
            row = int(law.rvs(size=1, random_state=state)[0])
        picks.append(row)
        newest = pairwise_distances(g, g[row : row + 1]).ravel().astype(float)
        for i in range(len(g)):
            if newest[i] < nearest[i]:
                nearest[i] = newest[i]
    return picks


def k_means_plus_plus_matvec(g: Tensor, k: int, generator: torch.Generator) -> list[int]:
    """The best form on the embeddings: cached norms, one float32 matrix-vector product per pick, inverse sampling."""
    squares = g.square().sum(1)
    picks = [int(squares.argmax())]
    nearest = torch.full((len(g),), torch.inf)
    while len(picks) < k:
        row = picks[-1]
        newest = (squares + squares[row] - 2.0 * (g @ g[row])).clamp_min_(0.0)
        nearest = torch.minimum(nearest, newest)
        nearest[row] = 0.0
        cumulated = nearest.double().cumsum(0)
        draw = torch.rand(1, dtype=torch.float64, generator=generator) * cumulated[-1]
        picks.append(min(int(torch.searchsorted(cumulated, draw)), len(g) - 1))
    return picks
