"""The numbers that are reported (METHOD 6), from arrays of shape [seeds, rounds]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # scipy.stats takes half a second to import, in every worker

Floats = NDArray[np.floating[Any]]
N_RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


def aulc(accuracy: Floats) -> Floats:
    """Mean accuracy over rounds 2 to R [S]; with a single round, that round's."""
    return accuracy[:, 1:].mean(axis=1) if accuracy.shape[1] > 1 else accuracy[:, 0]


def aulc_cost(accuracy: Floats, spent: Floats) -> Floats:
    """Area under accuracy against cost over the span of costs [S]: the accuracy at an average point of spending."""
    span = spent[:, -1] - spent[:, 0]
    area = np.trapezoid(accuracy, spent, axis=1)
    return np.where(span > 0, area / np.where(span > 0, span, 1.0), accuracy[:, -1])


def cost_to_reach(accuracy: Floats, spent: Floats, target: float) -> Floats:
    """The cost at which each seed first reaches the target [S], linear between rounds; NaN where it never does."""
    out = np.full(len(accuracy), np.nan)
    for s, (curve, cost) in enumerate(zip(accuracy, spent, strict=True)):
        reached = np.flatnonzero(curve >= target)
        if len(reached):
            r = int(reached[0])
            if r == 0:
                out[s] = cost[0]
            else:
                share = (target - curve[r - 1]) / (curve[r] - curve[r - 1])
                out[s] = cost[r - 1] + share * (cost[r] - cost[r - 1])
    return out


def paired_difference(first: Floats, second: Floats) -> Interval:
    """Mean of first - second over seeds, with the t interval of paired samples; no interval with one seed."""
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    mean = float(difference.mean())
    if len(difference) < 2:
        return Interval(mean, float("nan"), float("nan"))
    half = float(stdtrit(len(difference) - 1, 0.975) * difference.std(ddof=1) / np.sqrt(len(difference)))
    return Interval(mean, mean - half, mean + half)


def oracle_gap(strategy: Floats, random: Floats, oracle: Floats) -> Interval:
    """Share of the gap between random and perfect purity that a strategy closes, from AULCs [S] of the same seeds.

    A ratio of means over seeds, its interval by bootstrap over seeds. It says nothing where the oracle gains nothing:
    then all three are NaN. One seed has no interval, and neither has a gap that vanishes in more than 2.5% of the
    resamples: there the ratio has no bound, and a quantile of the other resamples would feign one.
    """
    gain, gap = strategy - random, oracle - random
    if gap.mean() <= 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    if len(gain) < 2:
        return Interval(float(gain.mean() / gap.mean()), float("nan"), float("nan"))
    drawn = np.random.Generator(np.random.Philox(key=0)).integers(len(gain), size=(N_RESAMPLES, len(gain)))
    resampled = gap[drawn].mean(axis=1)
    value = float(gain.mean() / gap.mean())
    there = resampled > 0
    if there.mean() < 0.975:
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(gain[drawn].mean(axis=1)[there] / resampled[there], [0.025, 0.975])
    return Interval(value, float(low), float(high))


def auroc(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Probability that a positive item scores above a negative one, ties counted half; NaN with only one kind."""
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    _, place, n_tied = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(n_tied) - (n_tied - 1) / 2)[place]  # from 1; items that tie share their mean rank
    return float((ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
