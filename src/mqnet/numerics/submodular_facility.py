"""Greedy maximisation of facility-location conditional mutual information on factored gradient embeddings.

    I(A; Q | P) = sum_i max(min(max_{j in A} s_ij, eta max_{q in Q} s_iq) - nu max_{p in P} s_ip, 0)

(Kaushal et al., "PRISM", 2022; Kothawade et al., "SIMILAR", 2021), s the cosine of the embeddings `a (x) h`, i over the
represented items, the maximum over an empty P taken as 0. With cap_i = eta max_q s_iq and floor_i = nu max_p s_ip, an
item with cap <= floor never contributes; for the others the level `b_i = clamp(max_{j in A} s_ij, floor_i, cap_i)`
only rises, and the gain of j is `sum_i max(min(s_ij, cap_i) - b_i, 0)`: monotone and submodular, so lazy greedy is
greedy. Kernel blocks are computed when they are needed and never kept.

Exact: all pool items are represented (quadratic in N: 20,000 items take seconds). The named approximation for large
pools is `sampled_items`: that many of the represented items stand for all of them, drawn in proportion to the most
they can contribute, `cap_i - floor_i`, at most once, and weighted by the inverse, so gains stay unbiased. Every item
stays a candidate, and what a candidate brings to itself, `cap_j - b_j`, is counted exactly: without it picks crowd on
the items that happened to be drawn.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mqnet.numerics.gradients import Factored, cosine_scales
from mqnet.numerics.products import row_chunks, row_products

_BATCH = 32  # candidates whose gain is taken again at a time, doubled while the best one is still unknown
_LARGEST_BATCH = 256
_CHUNK_ENTRIES = 500_000
_CACHED_ENTRIES = 16_000_000  # 128 MB of float64
_NO_GAIN = 1e-9
_STALE, _SCREENED, _EXACT = 0, 1, 2


def facility_location_cmi(
    pool: Factored,
    query: Factored,
    private: Factored,
    k: int,
    *,
    sampled_items: int | None = None,
    generator: torch.Generator | None = None,
    relevance: float = 1.0,
    privacy: float = 1.0,
) -> Tensor:
    """Rows of `pool` in the order greedy facility-location CMI takes them: int64 [min(k, N)], distinct.

    Exact without `sampled_items` (which needs a `generator`). The decision is the float32 rounding of the float64
    gain, the lowest row among equals. When no item gains anything more, the levels start again from the floors among
    the items left; when nothing gains even then, the lowest remaining rows follow.
    """
    pool.check("pool")
    query.check("query", pool)
    private.check("private", pool)
    if k < 0 or not 0 <= relevance <= 1 or not 0 <= privacy <= 1:
        raise ValueError(f"k must be >= 0, relevance and privacy in [0, 1]; got {k}, {relevance}, {privacy}")
    n = len(pool.a)
    n_picks = min(k, n)
    if n_picks == 0:
        return torch.empty(0, dtype=torch.int64)
    cap = relevance * largest_cosine(pool, query)
    floor = privacy * largest_cosine(pool, private)
    rows, weights = _represented(cap - floor, sampled_items, generator)
    search = _Search(pool, rows, weights, cap, floor)
    picks: list[int] = []
    while len(picks) < n_picks:
        row = search.best()
        if row is None:
            row = search.start_again()
        if row is None:
            picks.extend(search.free.nonzero().squeeze(1)[: n_picks - len(picks)].tolist())
            break
        picks.append(row)
        search.take(row)
    return torch.tensor(picks, dtype=torch.int64)


def largest_cosine(items: Factored, others: Factored) -> Tensor:
    """Largest cosine of each item to any of the others, as embeddings `a (x) h`: float64 [n]; 0 without others."""
    result = torch.zeros(len(items.a), dtype=torch.float64)
    if not len(others.a):
        return result
    scales, other_scales = cosine_scales(items), cosine_scales(others)
    a = others.a.double() * other_scales[:, None]
    h = others.h.double()
    for rows in row_chunks(len(result), len(h) + h.shape[1], _CHUNK_ENTRIES):
        kernel = items.h[rows].double() @ h.T
        kernel *= items.a[rows].double() @ a.T
        result[rows] = kernel.amax(1) * scales[rows]
    return result


def _represented(room: Tensor, size: int | None, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """Rows of the items with room to contribute, and their weights: all with weight 1, or a systematic sample."""
    live = (room > 0).nonzero().squeeze(1)
    if size is None or size >= len(live):
        return live, torch.ones(len(live), dtype=torch.float64)
    if generator is None or size < 1:
        raise ValueError(f"sampled_items needs a generator and must be at least 1; got {size}, {generator}")
    room = room[live]
    chance = torch.ones_like(room)
    certain = torch.zeros_like(room, dtype=torch.bool)
    while bool((grown := (room * (size - int(certain.sum())) >= room[~certain].sum()) & ~certain).any()):
        certain |= grown  # an item that would be drawn more than once is in the sample for sure, once
    chance[~certain] = room[~certain] * (size - int(certain.sum())) / room[~certain].sum()
    start = float(torch.rand(1, dtype=torch.float64, generator=generator))
    steps = (chance.cumsum(0) + start).floor()
    drawn = certain | (steps.diff(prepend=steps.new_zeros(1)) > 0)
    return live[drawn], 1.0 / chance[drawn]


class _Search:
    """Levels of the represented items, and upper bounds of every candidate's gain."""

    def __init__(self, pool: Factored, rows: Tensor, weights: Tensor, cap: Tensor, floor: Tensor) -> None:
        self.pool = pool
        self.scales = cosine_scales(pool)
        self.rows, self.weights, self.cap, self.floor = rows, weights, cap[rows], floor[rows]
        self.level = self.floor.clone()
        self.cap32, self.level32, self.weights32 = self.cap.float(), self.level.float(), weights.float()
        self.pool_cap, self.pool_floor = cap, floor
        # The share of a candidate's contribution to itself that the sample leaves out: 0 when all items are there.
        self.missing = (cap > floor).double()
        self.missing[rows] -= weights
        self.sampled = bool((self.missing != 0).any())
        self.since_start: list[int] = []
        # Unit factors of the represented items, in float32 and, while small, in float64.
        length = torch.linalg.vector_norm(pool.h[rows].float(), dim=1).double()
        self.lengths = length.clamp_min(torch.finfo(torch.float32).tiny)[:, None]
        self.a = pool.a[rows].double() * (self.scales[rows, None] * self.lengths)
        self.h = torch.empty(len(rows), pool.h.shape[1])
        for part in row_chunks(len(rows), self.h.shape[1], _CHUNK_ENTRIES):
            self.h[part] = (pool.h[rows[part]].double() / self.lengths[part]).float()
        self.a32 = self.a.float()
        self.h64 = pool.h[rows].double() / self.lengths if self.h.numel() <= _CACHED_ENTRIES else None
        self.free = torch.ones(len(pool.a), dtype=torch.bool)
        self.first_bounds = torch.zeros(len(pool.a))
        for chunk in row_chunks(len(pool.a), max(1, len(self.rows)), 4 * _CHUNK_ENTRIES):
            self.first_bounds[chunk] = self._screened(chunk)
        self.bounds = self.first_bounds.clone()
        self.state = torch.full((len(pool.a),), _STALE, dtype=torch.int8)

    def best(self) -> int | None:
        """The free row of largest gain now, the lowest among equals; None when no gain is left."""
        size = _BATCH
        while len(self.rows):
            limit = self.bounds.max()
            if float(limit) <= 0:
                return None
            leaders = (self.bounds == limit).nonzero().squeeze(1)
            states = self.state[leaders]
            if bool((states == _STALE).any()):
                waiting = torch.where(self.state == _STALE, self.bounds, -torch.inf)
                top = torch.topk(waiting, min(size, len(waiting)), sorted=False)
                stale = top.indices[top.values > 0]
                self.bounds[stale] = torch.minimum(self.bounds[stale], self._screened(stale))
                self.state[stale] = _SCREENED
                size = min(2 * size, _LARGEST_BATCH)
            elif bool((states == _SCREENED).any()):
                chosen = leaders[states == _SCREENED][:_LARGEST_BATCH]
                self.bounds[chosen] = self._gains(chosen)
                self.state[chosen] = _EXACT
            else:
                return int(leaders[0])
        return None

    def take(self, row: int) -> None:
        """Raise the levels to a pick."""
        self.free[row] = False
        self.bounds[row] = -torch.inf
        self.state.fill_(_STALE)
        self.since_start.append(row)
        for part in row_chunks(len(self.rows), self.h.shape[1], _CHUNK_ENTRIES):
            similarity = self._similarity(part, torch.tensor([row]))[:, 0]
            self.level[part] = torch.maximum(self.level[part], torch.minimum(similarity, self.cap[part]))
        self.level32 = self.level.float()

    def start_again(self) -> int | None:
        """Levels back to the floors; the best free row then, None if it gains nothing (or nothing was taken since)."""
        if not self.since_start:
            return None
        self.since_start = []
        self.level = self.floor.clone()
        self.level32 = self.level.float()
        self.bounds = self.first_bounds.masked_fill(~self.free, -torch.inf)
        self.state.fill_(_STALE)
        return self.best()

    def _similarity(self, part: slice, candidates: Tensor) -> Tensor:
        """Cosines in float64 of some represented items to some candidates."""
        a = self.pool.a[candidates].double() * self.scales[candidates, None]
        h = self.h64[part] if self.h64 is not None else self.pool.h[self.rows[part]].double() / self.lengths[part]
        return (h @ self.pool.h[candidates].double().T).mul_(self.a[part] @ a.T)

    def _gains(self, candidates: Tensor) -> Tensor:
        """Float32 roundings of the float64 gains of some candidates; below 1e-9 they count as 0."""
        gains = torch.zeros(len(candidates), dtype=torch.float64)
        for part in row_chunks(len(self.rows), max(len(candidates), self.h.shape[1]), _CHUNK_ENTRIES):
            similarity = self._similarity(part, candidates)
            similarity = torch.minimum(similarity, self.cap[part, None], out=similarity)
            gains += self.weights[part] @ similarity.sub_(self.level[part, None]).clamp_min_(0.0)
        gains += self._own(candidates)
        return torch.where(gains < _NO_GAIN, torch.zeros_like(gains), gains).float()

    def _screened(self, candidates: Tensor | slice) -> Tensor:
        """Upper bounds of the gains from float32 products.

        A float32 inner product of d terms errs by less than 8 sqrt(d) 2^-24 of the lengths but for a chance of about
        1e-13 (Higham & Mary, 2019), the elementary steps after it by a few 2^-24 more; only items above their level
        count.
        """
        h = self.pool.h[candidates].float()
        length = torch.linalg.vector_norm(h, dim=1, keepdim=True)
        h = h / length.clamp_min(torch.finfo(torch.float32).tiny)
        a = (self.pool.a[candidates].double() * self.scales[candidates, None] * length).float()
        kernel = row_products(h, self.h).mul_(row_products(a, self.a32))
        error = (8.0 * (h.shape[1] + a.shape[1]) ** 0.5 + 16.0) * 2.0**-24
        torch.minimum(kernel, self.cap32, out=kernel).sub_(self.level32 - error).clamp_min_(0.0)
        bound = torch.mv(kernel, self.weights32).mul_(1.0 + 1e-4)
        if not self.sampled:
            return bound
        own = self._own(candidates)
        return bound.add_(own.add(own.abs(), alpha=1e-4).float()).clamp_min_(0.0)

    def _own(self, candidates: Tensor | slice) -> Tensor:
        """What the sample leaves out of each candidate's contribution to itself."""
        level = self.pool_floor[candidates]
        if self.sampled and self.since_start:
            taken = self.pool.take(torch.tensor(self.since_start))
            a = self.pool.a[candidates].double() * self.scales[candidates, None]
            kernel = self.pool.h[candidates].double() @ taken.h.double().T
            kernel *= a @ (taken.a.double() * self.scales[self.since_start, None]).T
            level = torch.maximum(level, kernel.amax(1))
        return self.missing[candidates] * (self.pool_cap[candidates] - level).clamp_min(0.0)
