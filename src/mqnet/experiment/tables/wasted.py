"""What was spent on junk."""

from __future__ import annotations

import numpy as np

from mqnet.experiment.results import Curves, Results
from mqnet.experiment.summary import wasted as junk_bought
from mqnet.experiment.tables._layout import Number, by_setting, setting_heads, spread, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("wasted")
def wasted(results: Results) -> Table:
    """The cost of the OOD labels that the queries bought, and their share of what the queries cost."""

    def cell(curves: Curves) -> Number:
        cost = curves.cost_ood * junk_bought(curves)[:, -1]
        paid = curves["spent"][:, -1] - curves["spent"][:, 0]
        shown = spread(cost, digits=0)
        share = f" ({cost.sum() / paid.sum():.0%})" if np.all(paid > 0) else ""
        return Number(shown.text + share, shown.value)

    columns, spans = setting_heads(results)
    body = by_setting(results, cell, lowest=True)
    return Table(
        title("Cost wasted on OOD items", results),
        ("strategy", *columns),
        body.rows,
        ("Mean and standard deviation over seeds of the cost of OOD labels in the queries before the last, and its "
         "share of what those queries cost. The initial sample is left out: no strategy picked it.",),
        spans=spans,
        best=body.best,
        second=body.second,
    )  # fmt: skip
