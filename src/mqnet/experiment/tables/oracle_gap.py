"""How much of what perfect purity would gain a strategy gains."""

from __future__ import annotations

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.results import Curves, Results
from mqnet.experiment.statistics import aulc, oracle_gap
from mqnet.experiment.summary import ORACLE, RANDOM, interval
from mqnet.experiment.tables._layout import EMPTY, NAN, Number, by_setting, emphasis, setting_heads, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("oracle-gap")
def oracle_gap_closed(results: Results) -> Table:
    """The share of the gap in AULC between random choice and perfect purity that each strategy closes."""
    for name in (RANDOM, ORACLE):
        if name not in results.strategies:
            raise InputError(f"the oracle gap needs '{name}' in the grid: it is one of the lines the gap lies between.")

    def cell(curves: Curves) -> Number:
        trio = results.paired(curves.scenario, curves.ood_share, curves.strategy, RANDOM, ORACLE)
        if trio is None:
            return EMPTY
        found = oracle_gap(*[aulc(one["accuracy"]) for one in trio])
        return Number(interval(found), round(found.value, 2) if np.isfinite(found.value) else NAN)

    shown = [name for name in results.strategies if name not in (RANDOM, ORACLE)]
    columns, spans = setting_heads(results)
    body = by_setting(results, cell, strategies=shown)
    means = [
        _mean([cell(c) if (c := results.get(*setting, name)) is not None else EMPTY for setting in results.settings])
        for name in shown
    ]
    last = len(columns) + 1
    best, second = emphasis([means], [[(r, last) for r in range(len(shown))]])
    return Table(
        title("Oracle gap closed", results),
        ("strategy", *columns, "mean"),
        tuple((*row, mean.text) for row, mean in zip(body.rows, means, strict=True)),
        ("(AULC - AULC of random) / (AULC of oracle-purity - AULC of random), a ratio of means over seeds, with its "
         "95% interval by bootstrap over seeds; empty where perfect purity gains nothing, without an interval where it "
         "gains nothing in more than 2.5% of the resamples.",),
        spans=(*spans, ("", 1)) if spans else (),
        best=(*body.best, *best),
        second=(*body.second, *second),
    )  # fmt: skip


def _mean(numbers: list[Number]) -> Number:
    values = [number.value for number in numbers]
    if np.isnan(values).any():
        return EMPTY
    text = f"{np.mean(values):.2f}"
    return Number(text, float(text))
