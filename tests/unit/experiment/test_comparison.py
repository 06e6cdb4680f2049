"""Tests between strategies, against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mqnet.experiment.comparison import critical_difference, friedman, groups, holm, ranks, t_test, wilcoxon_test


@pytest.mark.parametrize("n", [2, 5, 30])
def test_the_paired_t_test_is_scipys(n: int) -> None:
    random = np.random.default_rng(n)
    first, second = random.normal(0.8, 0.02, n), random.normal(0.79, 0.02, n)
    found, expected = t_test(first, second), stats.ttest_rel(first, second)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((interval.low, interval.high))


def test_what_cannot_be_tested_has_no_p() -> None:
    assert math.isnan(t_test(np.array([0.5]), np.array([0.4])).p)
    assert math.isnan(t_test(np.array([0.1, 0.2, 0.3]), np.array([0.0, 0.1, 0.2])).p)  # equal but for rounding
    assert math.isnan(wilcoxon_test(np.array([0.5, 0.6]), np.array([0.5, 0.6])).p)


def test_wilcoxons_floor_is_as_documented() -> None:
    for n in (3, 5, 8):
        first = np.arange(1.0, n + 1)
        assert wilcoxon_test(first, np.zeros(n)).p == pytest.approx(2 / 2**n)


@pytest.mark.parametrize("m", [1, 2, 7])
def test_holm_is_the_closed_test_of_bonferroni(m: int) -> None:
    # the definition by closure: a hypothesis falls when every set that holds it does, by |set| times its least p
    p = np.random.default_rng(m).uniform(0, 0.2, m)
    sets = [[i for i in range(m) if code >> i & 1] for code in range(1, 2**m)]
    slow = [max(min(1.0, len(s) * p[s].min()) for s in sets if i in s) for i in range(m)]
    assert holm(p.tolist()) == pytest.approx(slow)


def test_holm_leaves_out_what_was_not_tested() -> None:
    found = holm([0.01, math.nan, 0.04])
    assert found[0] == pytest.approx(0.02)
    assert math.isnan(found[1])
    assert found[2] == pytest.approx(0.04)


@pytest.mark.parametrize("digits", [1, 6])
def test_ranks_and_friedman_are_scipys(digits: int) -> None:
    values = np.random.default_rng(3).uniform(size=(12, 5)).round(digits)  # one digit: many ties
    assert ranks(values) == pytest.approx(stats.rankdata(-values, axis=1))
    expected = stats.friedmanchisquare(*values.T)
    found = friedman(values)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert math.isnan(friedman(np.ones((4, 3))).p)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_nemenyis_difference_is_demsars_table(k: int, q: float) -> None:
    # Demsar 2006, Table 5: critical values at 0.05
    assert critical_difference(k, 14) == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 14)), abs=1e-3)


def test_groups_are_maximal_and_cover_all() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        mean_ranks = random.uniform(1, 6, 6).tolist()
        found = groups(mean_ranks, 1.5)
        for i in range(6):
            for j in range(6):
                together = any(i in members and j in members for members in found)
                assert together == (abs(mean_ranks[i] - mean_ranks[j]) <= 1.5)
        assert not any(set(a) < set(b) for a in found for b in found)
