"""Greedy maximisation of log-determinant conditional mutual information on factored gradient embeddings.

    I(A; Q | P) = log det S[A|P] - log det S[A|P,Q],    S = K + lambda I,    K = cosine kernel of `a (x) h`

(Kaushal et al., "PRISM", 2022; Kothawade et al., "SIMILAR", 2021), where `S[A|C] = S[A] - S[A,C] S[C]^-1 S[C,A]` is a
Schur complement and the kernel between A and Q (A and P) is scaled by the relevance eta (the privacy nu). The
determinants grow by one conditional variance per pick, so the gain of item i is

    gain_i = log v1_i - log v2_i,    v1_i = S[i | P, picks],    v2_i = S[i | P, Q, picks].

Both are followed as in a pivoted Cholesky factorisation: pick j lowers `v_i` by `cov(i, j)^2 / v_j`. A conditional
covariance is `a_i' Z_j h_i` with one [K, d] matrix Z_j, so a pick costs one product with the pool, [N, d] x [d, 2K],
and neither the N x N kernel nor the [N, K d] embeddings exist.

The products with the whole pool are float32 and give every gain an interval; the few items whose interval reaches the
best lower end are taken again in float64 (their variances are kept from pick to pick). The intervals are not a proof:
they are a worst-case bound scaled to the errors measured, with a margin, on a control group (`_Variances.calibrate`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from mqnet.numerics.gradients import Factored, cosine_scales
from mqnet.numerics.products import row_chunks, row_products
from mqnet.numerics.projection import Given, project

# Gains below this are rounding noise of two equal variances: they count as 0.
_NO_GAIN = 1e-9
# Items taken again in float64 together, when any must be; also the size of the control group.
_EXACT_BATCH = 64
# The intervals are this many times the largest error seen, and at least this share of the worst-case bound.
_SAFETY, _LEAST_SHARE = 8.0, 0.05


def log_det_cmi(
    pool: Factored,
    query: Factored,
    private: Factored,
    k: int,
    *,
    relevance: float = 1.0,
    privacy: float = 1.0,
    ridge: float = 1e-3,
) -> Tensor:
    """Rows of `pool` in the order greedy log-det CMI takes them: int64 [min(k, N)], distinct.

    The decision is the float32 rounding of the float64 gain, the lowest row among equals. When no item gains anything
    (an empty query set, zero vectors) the lowest remaining rows follow. Relevance and privacy lie in [0, 1]; where they
    differ the scaled matrix need not be positive definite, and variances stop at the ridge. ValueError names a row that
    is not finite. Memory beyond the inputs: O(N + min(m, K d)^2 + k K d) for m labelled items.
    """
    pool.check("pool")
    query.check("query", pool)
    private.check("private", pool)
    if k < 0 or not 0 <= relevance <= 1 or not 0 <= privacy <= 1 or ridge <= 0:
        raise ValueError(
            f"k must be >= 0, relevance and privacy in [0, 1], ridge > 0; got {k}, {relevance}, {privacy}, {ridge}"
        )
    n_picks = min(k, len(pool.a))
    if n_picks == 0:
        return torch.empty(0, dtype=torch.int64)
    scales = cosine_scales(pool)
    both = Factored(torch.cat([private.a, query.a]), torch.cat([private.h, query.h]))
    strength = torch.full((len(both.a),), relevance, dtype=torch.float64)
    strength[: len(private.a)] = privacy
    chains = (
        _Variances(pool, scales, project(private, strength[: len(private.a)], ridge), ridge, n_picks),
        _Variances(pool, scales, project(both, strength, ridge), ridge, n_picks),
    )
    free = torch.ones(len(pool.a), dtype=torch.bool)
    picks: list[int] = []
    while len(picks) < n_picks:
        row, gain = _best(chains, free)
        if gain < _NO_GAIN:
            picks.extend(free.nonzero().squeeze(1)[: n_picks - len(picks)].tolist())
            break
        picks.append(row)
        free[row] = False
        if len(picks) < n_picks:
            _condition_on(row, pool, scales, chains)
    return torch.tensor(picks, dtype=torch.int64)


def _best(chains: tuple[_Variances, _Variances], free: Tensor) -> tuple[int, float]:
    """The free row of largest gain, the lowest among equals, and the gain."""
    for chain in chains:
        chain.calibrate()
    (low1, high1), (low2, high2) = (chain.interval() for chain in chains)
    lowest = (low1.log_() - high2.log_()).masked_fill_(~free, -torch.inf)
    highest = (high1.log_() - low2.log_()).masked_fill_(~free, -torch.inf)
    rows = (highest >= lowest.max() - 1e-6).nonzero().squeeze(1)
    if bool((chains[0].n_exact[rows] < 0).any()) and len(rows) < _EXACT_BATCH:
        batch = torch.topk(highest, min(_EXACT_BATCH, len(highest))).indices
        rows = torch.cat([rows, batch[free[batch]]]).unique()
    private, both = (chain.exact(rows) for chain in chains)
    gains = (private.log() - both.log()).float()
    place = int(gains.numpy().argmax())
    return int(rows[place]), float(gains[place])


def _condition_on(row: int, pool: Factored, scales: Tensor, chains: tuple[_Variances, _Variances]) -> None:
    """Lower the variances of both chains by a pick, in one pass over the pool."""
    stacked = torch.cat([chain.add_direction(row) for chain in chains]).float()
    for rows in row_chunks(len(scales), pool.h.shape[1], 400_000):
        by_output = row_products(pool.h[rows].float(), stacked).unflatten(1, (len(chains), pool.a.shape[1]))
        a = (pool.a[rows].double() * scales[rows, None]).float()
        falls = (by_output @ a.unsqueeze(2)).squeeze(2).square_()
        for place, chain in enumerate(chains):
            chain.values[rows] -= falls[:, place]


class _Variances:
    """Conditional variances of all pool items given a labelled set and the picks so far."""

    def __init__(self, pool: Factored, scales: Tensor, given: Given, ridge: float, n_picks: int) -> None:
        self.pool, self.scales, self.given, self.ridge = pool, scales, given, ridge
        n, (n_outputs, width) = len(scales), (pool.a.shape[1], pool.h.shape[1])
        self.start = torch.empty(n, dtype=torch.float64)
        self.start_error = 0.0 if given.screen is None else _rounding(n_outputs * width) * float(given.screen.norm())
        for rows in row_chunks(n, max(width, n_outputs * width if given.screen is not None else given.size)):
            a, h = self._unit(rows)
            self.start[rows] = ridge + (given.quadratic(a, h) if given.screen is None else given.screened(a, h))
        self.values = self.start.clone()
        self.directions = torch.empty(n_picks, n_outputs, width, dtype=torch.float64)
        self.n_directions = 0
        self.control = torch.linspace(0, n - 1, min(n, _EXACT_BATCH)).long().unique()
        self.error_share = 0.0  # the largest error seen in the control group, as a share of the bound
        self.kept = torch.zeros(n, dtype=torch.float64)
        self.n_exact = torch.full((n,), -1, dtype=torch.int32)  # picks that `kept` accounts for; -1: not even the start

    def interval(self) -> tuple[Tensor, Tensor]:
        """Lower and upper ends of all variances, from the float32 passes, none below the ridge."""
        error = self._error(self.start, self.values).mul_(min(1.0, max(_SAFETY * self.error_share, _LEAST_SHARE)))
        low = (self.values - error).clamp_min_(self.ridge)
        return low, (self.values + error).clamp_min_(self.ridge)

    def calibrate(self) -> None:
        """Take the control group, spread over the pool, again in float64 and note how far the passes are off."""
        kept, values = self.exact(self.control), self.values[self.control].clamp_min(self.ridge)
        share = float(((values - kept).abs() / self._error(self.start[self.control], values)).max())
        self.error_share = max(share, self.error_share)

    def _error(self, start: Tensor, values: Tensor) -> Tensor:
        """Bound of the error of variances that began at `start` and stand at `values`.

        A pick's normalised direction has length at most 1, so a covariance errs by `g = _rounding(K + d)` at most, a
        variance after t picks by `2 g sqrt(t fall) + t g^2`, and a first value v by `2 e sqrt(v) + e^2`.
        """
        unit = _rounding(self.directions.shape[1] + self.directions.shape[2])
        t = self.n_directions
        error = (start - values).clamp_min_(0.0).mul_(4.0 * unit * unit * t).sqrt_().add_(t * unit * unit + 1e-12)
        if self.start_error:
            error += (start.sqrt() * (2.0 * self.start_error)).add_(self.start_error**2)
        return error

    def exact(self, rows: Tensor) -> Tensor:
        """Variances of some rows in float64, brought up to the last pick."""
        for part in rows.split(512):
            self._bring_up(part)
        return self.kept[rows].clamp_min(self.ridge)

    def _bring_up(self, rows: Tensor) -> None:
        new = rows[self.n_exact[rows] < 0]
        if len(new):
            self.kept[new] = self.given.quadratic(*self._unit(new)) + self.ridge
            self.n_exact[new] = 0
        done = self.n_exact[rows]
        for group in (done == 0, done > 0):  # items seen before miss a few picks, new ones all
            if not bool(group.any()):
                continue
            first = int(done[group].min())
            a, h = self._unit(rows[group])
            past = self.directions[first : self.n_directions]
            covariances = ((h @ past.flatten(0, 1).T).unflatten(1, (-1, a.shape[1])) @ a[:, :, None]).squeeze(2)
            counted = torch.arange(first, self.n_directions) >= done[group, None]
            self.kept[rows[group]] -= (covariances.square_() * counted).sum(1)
        self.n_exact[rows] = self.n_directions

    def add_direction(self, row: int) -> Tensor:
        """Z of a pick, divided by the root of its variance, kept and returned [K, d]; the pick is exact already."""
        a, h = (part[0] for part in self._unit(torch.tensor([row])))
        past = self.directions[: self.n_directions]
        direction = self.given.residual(a, h) - torch.tensordot((past @ h) @ a, past, dims=1)
        direction /= float(self.kept[row].clamp_min(self.ridge)) ** 0.5
        self.directions[self.n_directions] = direction
        self.n_directions += 1
        return direction

    def _unit(self, rows: slice | Tensor) -> tuple[Tensor, Tensor]:
        return self.pool.a[rows].double() * self.scales[rows, None], self.pool.h[rows].double()


def _rounding(n_terms: int) -> float:
    """Relative error of a float32 inner product, but for a chance of about 1e-13 (Higham & Mary, 2019)."""
    return (8.0 * n_terms**0.5 + 16.0) * 2.0**-24
