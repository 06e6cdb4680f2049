"""Tests between strategies: paired over seeds, corrected for how many there are, and by ranks over many settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, stdtr

from mqnet.experiment.statistics import Floats, Interval, paired_difference


@dataclass(frozen=True)
class PairedTest:
    """Mean of first - second over seeds with its 95% t interval, and the p value that it is zero (two-sided)."""

    difference: Interval
    p: float


def t_test(first: Floats, second: Floats) -> PairedTest:
    """The paired t test of values [S] of the same seeds; p is NaN with one seed or where all differences are equal."""
    found = paired_difference(first, second)
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    deviation = difference.std(ddof=1) if len(difference) > 1 else 0.0
    # rounding leaves a trace of spread where there is none: equal differences are no evidence of certainty
    if deviation <= 1e-12 * max(1.0, float(np.abs(difference).max())):
        return PairedTest(found, float("nan"))
    t = abs(found.value) / (deviation / np.sqrt(len(difference)))
    return PairedTest(found, float(2 * stdtr(len(difference) - 1, -t)))


def wilcoxon_test(first: Floats, second: Floats) -> PairedTest:
    """Wilcoxon's signed-rank test, exact for few seeds without ties; the interval is the t interval of the mean.

    p is NaN where no pair differs. With n seeds p cannot fall below 2 / 2^n: 0.0625 for five.
    """
    from scipy.stats import wilcoxon  # half a second to import: only who asks for it waits

    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    found = paired_difference(first, second)
    if not difference.any():
        return PairedTest(found, float("nan"))
    result: Any = wilcoxon(difference)
    return PairedTest(found, float(result.pvalue))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: the k-th smallest of m times m - k + 1, never decreasing.

    At most 1. NaN stays NaN and counts as no comparison.

    >>> [round(value, 3) for value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    out = np.full(len(values), np.nan)
    rows = np.flatnonzero(~np.isnan(values))
    order = rows[np.argsort(values[rows], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return out.tolist()


def ranks(values: Floats) -> Floats:
    """Ranks within each row [B, K], 1 for the highest value; ties share their mean rank."""
    values = np.asarray(values, dtype=np.float64)
    above = (values[:, None, :] > values[:, :, None]).sum(axis=2)
    same = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return above + (same + 1) / 2


@dataclass(frozen=True)
class Friedman:
    """Do the columns differ at all? The statistic, corrected for ties, and its p value (chi-square, K - 1 degrees)."""

    statistic: float
    p: float


def friedman(values: Floats) -> Friedman:
    """Friedman's test of values [B, K]: B blocks (scenario, share, seed), K strategies; NaN where all tie."""
    ranked = ranks(values)
    n_blocks, k = ranked.shape
    expected = (k + 1) / 2
    spread = float(((ranked - expected) ** 2).sum())
    if n_blocks < 2 or k < 2 or spread == 0:
        return Friedman(float("nan"), float("nan"))
    between = float(((ranked.mean(axis=0) - expected) ** 2).sum())
    statistic = n_blocks**2 * (k - 1) * between / spread
    return Friedman(statistic, float(chdtrc(k - 1, statistic)))


def critical_difference(n_strategies: int, n_blocks: int, alpha: float = 0.05) -> float:
    """Nemenyi's: mean ranks closer than q sqrt(K (K + 1) / (6 B)) are not told apart; q is studentised over sqrt 2."""
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, n_strategies, np.inf)) / np.sqrt(2.0)
    return q * float(np.sqrt(n_strategies * (n_strategies + 1) / (6.0 * n_blocks)))


def groups(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, ...]]:
    """The largest sets of strategies whose mean ranks lie within the critical difference, best first; they may overlap.

    >>> groups([1.2, 3.9, 2.0, 3.0], 1.0)
    [(0, 2), (2, 3), (3, 1)]
    """
    order = [int(i) for i in np.argsort(np.asarray(mean_ranks), kind="stable")]
    out: list[tuple[int, ...]] = []
    for start, first in enumerate(order):
        members = tuple(i for i in order[start:] if mean_ranks[i] - mean_ranks[first] <= difference)
        if not out or not set(members) <= set(out[-1]):
            out.append(members)
    return out
