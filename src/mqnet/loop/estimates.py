"""Counts in a finite pool, estimated from uniform draws round by round; exact about what was labelled before each.

Before round r is drawn, N_r of the pool's N items are unlabelled and t_r hits are among the labelled ones. Whatever
chose those, n_r items drawn uniformly from the N_r hold k_r hits, and, given all that went before, k_r is
hypergeometric: n_r draws from N_r items, T - t_r of them hits, T being the pool's count of hits. So

    T_r = t_r + N_r k_r / n_r    is unbiased for T, and sum_r w_r T_r is with any weights known before the draws;
    L(T) = prod_r C(T - t_r, k_r) C(N_r - T + t_r, n_r - k_r)    is the likelihood of the draws.

The interval is L's with Jeffreys' prior (beta 1/2, 1/2; on counts: beta-binomial), cut to the counts that are still
possible: equal tails, and all the way to the least or the largest possible count where the likelihood ratio does not
reject that one (Brown, Cai & DasGupta 2001, "Interval estimation for a binomial proportion", do so where there were no
hits, or only hits; here a campaign may have bought every hit there is). Wilson's interval would need one n and one p:
here every round has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import chi2
from scipy.stats import t as student

CONFIDENCE = 0.95
_GRID = 4_000  # counts at which the likelihood is looked at, at least; all of them in smaller pools


@dataclass(frozen=True)
class Draw:
    """A round's draw: `n` of the `n_left` items unlabelled before it, `hits` of them; `found` hits were labelled."""

    n_left: int
    found: int
    n: int
    hits: int


@dataclass(frozen=True)
class Interval:
    """A value between its 95% bounds, and how many draws it rests on."""

    value: float
    low: float
    high: float
    n: int

    def times(self, factor: float, plus: float = 0.0) -> Interval:
        """The interval of `factor * value + plus`."""
        ends = sorted((self.low * factor + plus, self.high * factor + plus))
        return Interval(self.value * factor + plus, ends[0], ends[1], self.n)


def count(draws: Sequence[Draw], total: int, lowest: int, highest: int) -> Interval | None:
    """The number of hits in a pool of `total` items, known to lie in [lowest, highest]; None without any draw."""
    used = [draw for draw in draws if draw.n > 0]
    n = sum(draw.n for draw in used)
    if not n:
        return None
    value = min(max(_unbiased(used), lowest), highest)  # unbiased but for this cut, to what is still possible
    low, high = _likely(used, total, lowest, highest)
    return Interval(value, low, high, n)


def _unbiased(draws: Sequence[Draw]) -> float:
    """sum_r w_r T_r, w_r in proportion to the inverse of N_r^2 / n_r (1 - n_r / N_r): T_r's variance but for p."""
    weights = [draw.n / (draw.n_left * max(draw.n_left - draw.n, 1e-9)) for draw in draws]
    totals = [draw.found + draw.n_left * draw.hits / draw.n for draw in draws]
    return float(np.average(totals, weights=weights))


def _likely(draws: Sequence[Draw], total: int, lowest: int, highest: int) -> tuple[float, float]:
    size = min(highest - lowest, max(_GRID, 40 * sum(draw.n for draw in draws))) + 1
    counts = np.linspace(lowest, highest, size)
    draws_say = np.zeros(size)
    for draw in draws:
        left = counts - draw.found
        draws_say += _log_choose(left, draw.hits) + _log_choose(draw.n_left - left, draw.n - draw.hits)
    if not np.isfinite(draws_say.max()):  # corrections made the draws impossible: nothing can be excluded
        return float(lowest), float(highest)
    rejected = 2.0 * (draws_say.max() - draws_say[[0, -1]]) > chi2.ppf(CONFIDENCE, 1)
    log = draws_say + _log_choose(total, counts) + gammaln(counts + 0.5) + gammaln(total - counts + 0.5)
    mass = np.exp(log - log.max())
    below = np.cumsum(mass) / mass.sum()
    tail = (1.0 - CONFIDENCE) / 2
    low = int(np.searchsorted(below, tail)) if rejected[0] else 0
    high = min(int(np.searchsorted(below, 1.0 - tail)), size - 1) if rejected[1] else size - 1
    return float(counts[low]), float(counts[high])


def _log_choose(n: NDArray[np.float64] | int, k: NDArray[np.float64] | int) -> NDArray[np.float64]:
    """log C(n, k); -inf where k lies outside [0, n]."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64))
    possible = (k >= 0) & (k <= n)
    m, j = np.where(possible, n, 0.0), np.where(possible, k, 0.0)
    return np.where(possible, gammaln(m + 1) - gammaln(j + 1) - gammaln(m - j + 1), -np.inf)


def mean(values: NDArray[np.float64]) -> Interval | None:
    """The mean of what was measured on each of a few uniformly drawn items, with Student's interval."""
    n = len(values)
    if n < 2:
        return None
    middle, error = float(values.mean()), float(values.std(ddof=1)) / n**0.5
    reach = float(student.ppf(0.5 + CONFIDENCE / 2, n - 1)) * error
    return Interval(middle, middle - reach, middle + reach, n)
