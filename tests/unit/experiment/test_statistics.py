"""The reported numbers against scipy, scikit-learn and arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from mqnet.experiment.statistics import aulc, aulc_cost, auroc, cost_to_reach, oracle_gap, paired_difference


def test_aulc_leaves_the_first_round_out() -> None:
    assert aulc(np.array([[0.1, 0.5, 0.7], [0.9, 0.2, 0.4]])).tolist() == pytest.approx([0.6, 0.3])
    assert aulc(np.array([[0.25]])).tolist() == [0.25]


def test_area_against_uneven_costs_is_the_trapezoids() -> None:
    accuracy, spent = np.array([[0.5, 0.7, 0.9]]), np.array([[10.0, 20.0, 50.0]])
    # ((0.5 + 0.7) / 2 * 10 + (0.7 + 0.9) / 2 * 30) / 40
    assert aulc_cost(accuracy, spent).tolist() == pytest.approx([0.75])
    assert aulc_cost(np.array([[0.8]]), np.array([[10.0]])).tolist() == [0.8]


def test_cost_to_reach_is_linear_between_rounds() -> None:
    accuracy = np.array([[0.5, 0.7, 0.6, 0.9], [0.8, 0.9, 0.9, 0.9], [0.1, 0.1, 0.2, 0.3]])
    spent = np.array([[10.0, 20.0, 30.0, 40.0]] * 3)
    assert cost_to_reach(accuracy, spent, 0.65).tolist() == pytest.approx([17.5, 10.0, math.nan], nan_ok=True)
    assert cost_to_reach(accuracy, spent, 0.9).tolist() == pytest.approx([40.0, 20.0, math.nan], nan_ok=True)


@pytest.mark.parametrize("n", [2, 3, 20])
def test_paired_difference_is_scipys_paired_t_interval(n: int) -> None:
    random = np.random.default_rng(n)
    first, second = random.normal(size=n), random.normal(0.3, size=n)
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    found = paired_difference(first, second)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.value == pytest.approx((first - second).mean())


def test_one_seed_has_no_interval() -> None:
    for found in (
        paired_difference(np.array([0.5]), np.array([0.4])),
        oracle_gap(np.array([0.5]), np.array([0.4]), np.array([0.6])),
    ):
        assert math.isfinite(found.value)
        assert math.isnan(found.low)
        assert math.isnan(found.high)


def test_oracle_gap_is_a_ratio_of_means() -> None:
    random, oracle = np.array([0.5, 0.6, 0.7]), np.array([0.7, 0.7, 0.9])
    found = oracle_gap(np.array([0.6, 0.6, 0.85]), random, oracle)
    assert found.value == pytest.approx(0.25 / 0.5)
    assert found.low <= found.value <= found.high
    same = oracle_gap(random + 0.5 * (oracle - random), random, oracle)
    assert (same.low, same.value, same.high) == pytest.approx((0.5, 0.5, 0.5))
    assert math.isnan(oracle_gap(random, oracle, random).value)  # the oracle gains nothing: there is no gap


def test_a_gap_that_may_not_exist_has_no_interval() -> None:
    random = np.array([0.70, 0.71, 0.69, 0.70, 0.705])
    gap = np.array([0.03, -0.015, -0.01, 0.02, -0.005])  # 0.004 on average, at most 0 in a third of the resamples
    found = oracle_gap(random + np.array([0.01, 0.0, 0.01, 0.005, 0.0]), random, random + gap)
    assert found.value == pytest.approx(0.005 / 0.004)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    # only 1 of 4 ** 4 resamples holds nothing but the last seed: far below 2.5%, the interval stands
    sure = np.array([0.03, 0.03, 0.03, -0.001])
    kept = oracle_gap(random[:4] + sure / 2, random[:4], random[:4] + sure)
    assert (kept.low, kept.high) == pytest.approx((0.5, 0.5))


def test_oracle_gap_covers_the_truth() -> None:
    # 20 seeds, the strategy closes 60% of a gap of 0.1: about 19 of 20 intervals hold 0.6
    random, n_held = np.random.default_rng(0), 0
    for _ in range(60):
        base = random.normal(0.7, 0.05, size=20)
        gap = random.normal(0.1, 0.02, size=20)
        found = oracle_gap(base + 0.6 * gap + random.normal(0, 0.02, size=20), base, base + gap)
        n_held += found.low <= 0.6 <= found.high
    assert 50 <= n_held <= 60


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40))
def test_auroc_is_scikit_learns_ties_included(pairs: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in pairs], dtype=np.float64)
    positive = np.array([kind for _, kind in pairs])
    if positive.all() or not positive.any():
        assert math.isnan(auroc(scores, positive))
    else:
        assert auroc(scores, positive) == pytest.approx(roc_auc_score(positive, scores))
        assert auroc(scores.astype(np.float32), positive) == pytest.approx(roc_auc_score(positive, scores))
