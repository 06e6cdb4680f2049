"""Tables and the verdict, from rows small enough to check by hand."""

from __future__ import annotations

import math

import pytest

from mqnet.experiment.results import Results, Row
from mqnet.experiment.simulate import RoundResult
from mqnet.experiment.summary import compact, favourite_of, summarise, tables, verdict

# accuracy of rounds 1 to 3 for two seeds; junk bought before each round; share of known items in each query
ACCURACY = {
    "random": ([0.50, 0.60, 0.70], [0.50, 0.62, 0.72]),
    "mine": ([0.50, 0.66, 0.80], [0.50, 0.64, 0.78]),
    "oracle-purity": ([0.50, 0.70, 0.90], [0.50, 0.72, 0.88]),
}
JUNK = {"random": [4, 8, 12], "mine": [4, 6, 7], "oracle-purity": [4, 4, 4]}
SHARE = {"random": [0.6, 0.6, 0.6], "mine": [0.8, 0.9, 1.0], "oracle-purity": [1.0, 1.0, 1.0]}


def _results(*names: str, seeds: int = 2, cost_ood: float = 1.0) -> Results:
    return Results(
        Row(
            "digits", name, 0.4, seed,
            RoundResult(r + 1, ACCURACY[name][seed][r], 10.0 * (r + 1), 10 * (r + 1) - JUNK[name][r], JUNK[name][r],
                        SHARE[name][r], 0.9 if name == "mine" else math.nan, 0.5, 0.0, 0.0, 0.0, 0.0),
            "cell", cost_ood,
        )
        for name in names for seed in range(seeds) for r in range(3)
    )  # fmt: skip


def test_the_table_by_hand() -> None:
    (table,) = tables(_results("random", "mine", "oracle-purity", cost_ood=2.0))
    assert table.title == "digits, 40% OOD, 2 seeds"
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    # AULC of mine: seeds (.66 + .80) / 2 and (.64 + .78) / 2; of random .65 and .67; of the oracle .80 and .80
    assert rows["mine"]["final accuracy"] == "79.00 ± 1.41"
    assert rows["mine"]["AULC"] == "72.00"
    # trapezoids: seed 0 (.58 + .73) / 2, seed 1 (.57 + .71) / 2
    assert rows["mine"]["AULC-cost"] == "64.75"
    # differences .08 and .04: mean .06, standard error .02, t(1) = 12.706
    assert rows["mine"]["over random (AULC, points)"] == "+6.00 [-19.41, +31.41]"
    # .06 / .14; resampled seeds give .04 / .13 to .08 / .15
    assert rows["mine"]["oracle gap closed"] == "0.43 [0.31, 0.53]"
    assert rows["mine"]["known in queries"] == "90%"
    assert rows["mine"]["spent on OOD"] == "6"
    assert rows["mine"]["purity AUROC"] == "0.900"
    assert rows["random"]["over random (AULC, points)"] == ""
    assert rows["random"]["oracle gap closed"] == rows["random"]["purity AUROC"] == ""
    assert rows["oracle-purity"]["oracle gap closed"] == ""
    assert table.markdown().splitlines()[4].startswith("| random | 71.00 ± 1.41 |")


def test_one_seed_is_shown_without_spread() -> None:
    results = _results("random", "mine", "oracle-purity", seeds=1)
    (row,) = [row for row in tables(results)[0].rows if row[0] == "mine"]
    assert row[1] == "80.00"
    assert row[4:6] == ("+8.00", "0.53")
    assert "[" not in "".join(compact(results)[0].rows[1])


def test_the_verdict_by_hand() -> None:
    assert verdict(_results("random", "mine", "oracle-purity"), "mine") == (
        "For the same 30 spent, mine ends at 79.0% accuracy (random 71.0%), averages 6.0 points above random over the "
        "rounds, a difference within the noise of the seeds and closes 43% of the gap between random choice and "
        "perfect purity; its queries spent 3 on junk, random ones 8."
    )


@pytest.mark.parametrize("names", [("random",), ("random", "oracle-purity"), ("mine",)])
def test_without_a_pair_there_is_no_verdict(names: tuple[str, ...]) -> None:
    results = _results(*names)
    assert "nothing to compare" in verdict(results, favourite_of(results.strategies))


def test_the_favourite_is_mqnet_or_the_last_strategy() -> None:
    assert favourite_of(["random", "confidence", "sum", "oracle-purity"]) == "sum"
    assert favourite_of(["mqnet", "sum", "random"]) == "mqnet"
    assert favourite_of(["random", "oracle-purity"]) == "random"


def test_a_strategy_without_a_partner_is_still_summarised() -> None:
    (mine,) = summarise(_results("mine"), "digits", 0.4)
    assert mine.over_random is None
    assert mine.gap_closed is None
