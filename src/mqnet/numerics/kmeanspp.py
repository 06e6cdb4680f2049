"""k-means++ seeding (D^2 sampling) on gradient embeddings `g = a (x) h`, which are never materialised.

Arthur & Vassilvitskii, "k-means++", 2007, as BADGE uses it (Ash et al., "Deep Batch Active Learning by Diverse,
Uncertain Gradient Lower Bounds", 2020): the first pick is the item of largest norm, every other one is drawn with a
probability in proportion to `w_i = min over picks c of |g_i - g_c|^2`, where

    |g_i - g_c|^2 = |a_i|^2 |h_i|^2 + |a_c|^2 |h_c|^2 - 2 (a_i . a_c)(h_i . h_c),    taken as 0 below 1e-12 of the
    squares.

Reading the pool once per draw would cost a memory pass each time. Instead candidates are drawn from the weights of the
last refresh, which can only be too large, and accepted with probability (weight now) / (weight then): rejection
sampling, the same distribution exactly. One product with all picks since then refreshes the weights, at fixed points
of the stream of draws, so picks depend on the draws alone and a shorter query is a prefix of a longer one. All sums
are float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mqnet.numerics.products import require_finite, require_matrix, row_chunks

REFRESH_PICKS = 48
REFRESH_REJECTIONS = 6
SAME = 1e-12
_CHUNK_ENTRIES = 400_000  # float64, several arrays of this size at a time: they stay in the caches


def k_means_plus_plus(a: Tensor, h: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Rows picked by D^2 sampling on the embeddings `a [N, K] (x) h [N, d]`: int64 [min(k, N)], distinct, in order.

    Once all weights are zero (every item equals a pick) the lowest remaining rows follow. Memory beyond the inputs is
    O(N + k (K + d)). ValueError names a row that is not finite.
    """
    require_matrix("a", a)
    require_matrix("h", h)
    if len(a) != len(h):
        raise ValueError(f"a has {len(a)} rows and h has {len(h)}; both must describe the same items")
    if k < 0:
        raise ValueError(f"k must not be negative; got {k}")
    n_picks = min(k, len(a))
    if n_picks == 0:
        return torch.empty(0, dtype=torch.int64)
    squares = _squared_lengths(a, h)
    first = int(squares.float().numpy().argmax())  # float32: rounding of the 64-bit sum must not decide a tie
    picks = [first]
    weights = torch.full((len(a),), torch.inf, dtype=torch.float64)
    while len(picks) < n_picks:
        _refresh(weights, a, h, squares, torch.tensor(picks[-REFRESH_PICKS:]))
        weights[picks] = 0.0
        drawn = _draw(weights, a, h, squares, min(REFRESH_PICKS, n_picks - len(picks)), generator)
        if drawn is None:
            left = torch.ones(len(a), dtype=torch.bool)
            left[picks] = False
            picks.extend(left.nonzero().squeeze(1)[: n_picks - len(picks)].tolist())
        else:
            picks.extend(drawn)
    return torch.tensor(picks, dtype=torch.int64)


def _squared_lengths(a: Tensor, h: Tensor) -> Tensor:
    squares = torch.empty(len(a), dtype=torch.float64)
    for rows in row_chunks(len(a), h.shape[1] + a.shape[1], _CHUNK_ENTRIES):
        squares[rows] = a[rows].double().square().sum(1) * h[rows].double().square().sum(1)
    require_finite("the squared length of the gradient embedding", squares)
    return squares


def _squared_distances(a: Tensor, h: Tensor, squares: Tensor, rows: slice | Tensor, centres: Tensor) -> Tensor:
    """Squared distances of the embeddings of `rows` to those of `centres`: float64 [rows, centres]."""
    cross = h[rows].double() @ h[centres].double().T
    cross *= a[rows].double() @ a[centres].double().T
    total = squares[rows, None] + squares[centres]
    distance = torch.sub(total, cross, alpha=2.0)
    return distance.masked_fill_(distance < total.mul_(SAME), 0.0)


def _refresh(weights: Tensor, a: Tensor, h: Tensor, squares: Tensor, centres: Tensor) -> None:
    for rows in row_chunks(len(a), max(h.shape[1], len(centres)), _CHUNK_ENTRIES):
        nearest = _squared_distances(a, h, squares, rows, centres).amin(1)
        torch.minimum(weights[rows], nearest, out=weights[rows])


def _draw(
    weights: Tensor, a: Tensor, h: Tensor, squares: Tensor, n: int, generator: torch.Generator
) -> list[int] | None:
    """Up to n picks from these weights, fewer after REFRESH_REJECTIONS; None when all weights are zero."""
    cumulated = weights.cumsum(0)
    if float(cumulated[-1]) == 0.0:
        return None
    last = int(weights.nonzero()[-1])
    drawn: list[int] = []
    n_rejected = 0
    while len(drawn) < n and n_rejected < REFRESH_REJECTIONS:
        place, chance = torch.rand(2, dtype=torch.float64, generator=generator).tolist()
        row = min(int(torch.searchsorted(cumulated, place * cumulated[-1], right=True)), last)
        weight = float(weights[row])
        now = weight
        if drawn:
            now = min(now, float(_squared_distances(a, h, squares, torch.tensor([row]), torch.tensor(drawn)).min()))
        if row not in drawn and chance * weight < now:
            drawn.append(row)
        else:
            n_rejected += 1
    return drawn
