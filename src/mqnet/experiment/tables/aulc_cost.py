"""Area under accuracy against cost."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import METRICS, by_setting, percent, setting_heads, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("aulc-cost")
def aulc_cost(results: Results) -> Table:
    """Area under test accuracy against cost spent, divided by that cost: the accuracy at an average point."""
    columns, spans = setting_heads(results)
    body = by_setting(results, lambda curves: percent(METRICS["aulc-cost"][1](curves)))
    return Table(
        title("Area under accuracy against cost (%)", results),
        ("strategy", *columns),
        body.rows,
        ("Mean and standard deviation over seeds; the area from the first model to the last, divided by the cost "
         "between them.",),
        spans=spans,
        best=body.best,
        second=body.second,
    )  # fmt: skip
