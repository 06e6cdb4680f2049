"""The favourite against every other strategy, over the same seeds."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.comparison import PairedTest, holm, t_test, wilcoxon_test
from mqnet.experiment.results import Results
from mqnet.experiment.summary import points
from mqnet.experiment.tables._layout import METRICS, favourite_among, setting_columns, setting_names, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table

Metric = Literal["aulc", "final", "aulc-cost"]
TESTS = {"t": t_test, "wilcoxon": wilcoxon_test}
ALPHA = 0.05


@kind_of_table("paired")
def paired(
    results: Results,
    *,
    favourite: str | None = None,
    metric: Metric = "aulc",
    test: Literal["t", "wilcoxon"] = "t",
) -> Table:
    """The favourite minus each other strategy, in points, tested over seeds; p values corrected by Holm.

    The correction is over the other strategies of the same scenario and OOD share.
    """
    mine = favourite_among(results, favourite)
    if metric not in METRICS or test not in TESTS:
        raise InputError(f"metric is one of {', '.join(METRICS)}; test is one of {', '.join(TESTS)}.")
    name, measure = METRICS[metric]
    rows: list[tuple[str, ...]] = []
    rules: list[int] = []
    for setting in results.settings:
        found: list[tuple[str, int, PairedTest]] = []
        for other in results.strategies:
            pair = results.paired(*setting, mine, other) if other != mine else None
            if pair is not None:
                ours, theirs = (measure(curves) for curves in pair)
                found.append((other, len(pair[0].seeds), TESTS[test](ours, theirs)))
        if rows and found:
            rules.append(len(rows))
        corrected = holm([result.p for _, _, result in found])
        rows += [
            (
                *setting_names(results, *setting), other, str(n), points(result.difference), p_text(result.p),
                p_text(adjusted), _verdict(result.difference.value, adjusted),
            )
            for (other, n, result), adjusted in zip(found, corrected, strict=True)
        ]  # fmt: skip
    which = "paired t test" if test == "t" else "Wilcoxon's signed-rank test"
    return Table(
        title(f"{mine} minus the others: {name}, points", results),
        (*setting_columns(results), "against", "seeds", "difference [95% interval]", "p", "p (Holm)", "verdict"),
        tuple(rows),
        (f"Two-sided {which} over seeds; intervals are t intervals of the mean difference, not corrected. Holm's "
         f"correction is over the strategies of one scenario and OOD share; a verdict asks for p (Holm) below "
         f"{ALPHA:g}. {_power(rows, test, results)}",),
        n_names=len(setting_columns(results)) + 1,
        rules=tuple(rules),
    )  # fmt: skip


def p_text(p: float) -> str:
    """'0.034', '< 0.001', empty where there is no test."""
    if np.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _verdict(difference: float, p: float) -> str:
    if np.isnan(p) or p >= ALPHA:
        return "not told apart"
    return "wins" if difference > 0 else "loses"


def _power(rows: list[tuple[str, ...]], test: str, results: Results) -> str:
    n = min((int(row[len(setting_columns(results)) + 1]) for row in rows), default=0)
    if test == "wilcoxon" and n and 2.0 ** (1 - n) >= ALPHA:
        return f"With {n} seeds its p cannot fall below {2.0 ** (1 - n):g}: it cannot tell anything apart."
    return "Few seeds tell apart large differences only." if n < 10 else ""
