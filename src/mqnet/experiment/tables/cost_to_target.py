"""What a target accuracy costs."""

from __future__ import annotations

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.results import Curves, Results
from mqnet.experiment.statistics import cost_to_reach
from mqnet.experiment.summary import RANDOM
from mqnet.experiment.tables._layout import NAN, Number, by_setting, setting_heads, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("cost-to-target")
def cost_to_target(results: Results, *, target: float | None = None) -> Table:
    """The median cost over seeds at which a strategy first reaches a target accuracy.

    The target is a share (0.85); without one it is, setting by setting, what random choice reaches at its end (where it
    did not run: what the least strategy reaches). A seed that never gets there counts as dearer than any that does.
    """
    if target is not None and not 0 < target < 1:
        raise InputError(f"target is {target:g}: an accuracy is a share between 0 and 1, such as 0.85.")
    targets = {setting: target if target is not None else _usual(results, *setting) for setting in results.settings}

    def cell(curves: Curves) -> Number:
        costs = cost_to_reach(curves["accuracy"], curves["spent"], targets[curves.scenario, curves.ood_share])
        never = int(np.isnan(costs).sum())
        median = float(np.median(np.where(np.isnan(costs), np.inf, costs)))
        more = f" ({never} of {len(costs)} never)" if never else ""
        if np.isinf(median):
            return Number(f"> {curves['spent'][:, -1].max():.0f}{more}", NAN)
        return Number(f"{median:.0f}{more}", float(f"{median:.0f}"))

    columns, spans = setting_heads(results)
    body = by_setting(results, cell, lowest=True)
    row = ("target accuracy (%)", *(f"{100 * targets[setting]:.2f}" for setting in results.settings))
    chosen = "" if target is not None else " The target is the mean final accuracy of random choice."
    if target is None and not any(results.plugin(name).name == RANDOM for name in results.strategies):
        chosen = " The target is the lowest mean final accuracy of a strategy."
    return Table(
        title("Cost to reach a target accuracy", results),
        ("strategy", *columns),
        (row, *body.rows),
        (f"Median over seeds, linear between rounds, the initial sample's cost in it; seeds that never reach the "
         f"target count as dearest and are told.{chosen}",),
        spans=spans,
        rules=(1,),
        best=tuple((r + 1, c) for r, c in body.best),
        second=tuple((r + 1, c) for r, c in body.second),
    )  # fmt: skip


def _usual(results: Results, scenario: str, share: float) -> float:
    means = {
        name: float(curves["accuracy"][:, -1].mean())
        for name in results.strategies
        if (curves := results.get(scenario, share, name)) is not None
    }
    random = [mean for name, mean in means.items() if results.plugin(name).name == RANDOM]
    return min(random or means.values())
