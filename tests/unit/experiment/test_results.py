"""Rows on disk and curves in memory."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mqnet.errors import InputError
from mqnet.experiment.results import COLUMNS, Results, Row, read_rows, write_rows
from mqnet.experiment.simulate import RoundResult
from mqnet.experiment.statistics import aulc

NAN = math.nan
BASE = RoundResult(1, 0.1, 20.0, 15, 5, 0.75, NAN, 0.3, 0.01, 0.02, 0.03, 0.04)


def _row(strategy: str, seed: int, round_: int, accuracy: float = 0.5, share: float = 0.4) -> Row:
    result = replace(BASE, round=round_, accuracy=accuracy, n_ood=5 * round_)
    return Row("split, digits", strategy, share, seed, result, "c0ffee")


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [_row('mine, "quoted"', 3, 1, 1 / 3), _row("random", -1, 2, NAN)]
    path = tmp_path / "results.csv"
    write_rows(path, rows)
    found = read_rows(path)
    assert repr(found) == repr(rows)  # NaN differs from itself, not in print
    head, first, _ = path.read_text().splitlines()
    assert head == ",".join(COLUMNS)
    assert ",," in first  # the AUROC that does not exist
    with pytest.raises(InputError, match="no cell has finished"):
        read_rows(tmp_path / "none.csv")


def test_numbers_of_numpy_are_written_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    write_rows(path, [replace(_row("random", 0, 1), result=replace(BASE, accuracy=np.float64(0.25)))])
    assert read_rows(path)[0].result.accuracy == 0.25


def test_curves_are_seeds_by_rounds() -> None:
    rows = [_row("random", seed, r, 0.1 * seed + 0.01 * r) for seed in (4, 2) for r in (1, 2, 3)]
    curves = Results(rows).get("split, digits", 0.4, "random")
    assert curves is not None
    assert curves.seeds == (4, 2)
    assert curves["accuracy"] == pytest.approx(np.array([[0.41, 0.42, 0.43], [0.21, 0.22, 0.23]]))
    assert curves.n_asked.tolist() == [[5, 5], [5, 5]]
    assert curves.of_seeds([2])["accuracy"] == pytest.approx(np.array([[0.21, 0.22, 0.23]]))


def test_pairs_hold_the_seeds_both_have() -> None:
    rows = [_row("random", seed, 1, seed / 10) for seed in (0, 1, 2)]
    rows += [_row("mine", seed, 1, seed / 10 + 0.05) for seed in (2, 0, 5)]
    rows += [_row("lonely", 7, 1)]
    results = Results(rows)
    assert results.strategies == ["random", "mine", "lonely"]
    assert results.settings == [("split, digits", 0.4)]
    mine, random = results.paired("split, digits", 0.4, "mine", "random") or ()
    assert mine.seeds == random.seeds == (2, 0)
    assert (mine["accuracy"] - random["accuracy"]).ravel() == pytest.approx([0.05, 0.05])
    assert results.paired("split, digits", 0.4, "mine", "lonely") is None
    assert results.paired("split, digits", 0.4, "mine", "absent") is None
    assert results.get("split, digits", 0.2, "mine") is None


def test_a_campaign_that_ran_out_of_pool_stands_still() -> None:
    rows = [_row("random", 0, r, r / 10) for r in (1, 2, 3)] + [_row("random", 1, 1, 0.9)]
    curves = Results(rows).get("split, digits", 0.4, "random")
    assert curves is not None
    assert curves["accuracy"] == pytest.approx(np.array([[0.1, 0.2, 0.3], [0.9, 0.9, 0.9]]))
    # what was not asked has no share, and took no time
    for name in ("query_known_share", "purity_auroc", "seconds_fit"):
        assert np.isnan(curves[name][1, 1:]).all()
    assert curves["query_known_share"][:, 0].tolist() == [0.75, 0.75]


def test_every_strategy_of_a_setting_is_averaged_over_the_same_rounds() -> None:
    """One curve, accuracy against spending: who spends twice as much a round ends after half of the rounds."""
    fast = [_row("fast", 0, r, min(0.9, 0.1 + 0.2 * r)) for r in (1, 2, 3)]
    slow = [_row("slow", 0, r, 0.1 * r) for r in (1, 2, 3, 4, 5)]
    other = [_row("slow", 0, r, 0.5, share=0.2) for r in range(1, 9)]
    for results in (Results([*fast, *slow, *other]), Results([*fast, *slow, *other]).only(strategies=["fast"])):
        curves = results.get("split, digits", 0.4, "fast")
        assert curves is not None
        assert curves["accuracy"] == pytest.approx(np.array([[0.3, 0.5, 0.7, 0.7, 0.7]]))
        assert aulc(curves["accuracy"]) == pytest.approx([(0.5 + 0.7 + 0.7 + 0.7) / 4])
