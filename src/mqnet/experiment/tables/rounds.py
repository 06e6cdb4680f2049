"""The paper's table of accuracy and purity of the queries over rounds."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import Line, by_round, mean_over_seeds, setting_columns, setting_names, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("rounds")
def rounds(results: Results, *, every: int = 1) -> Table:
    """Test accuracy of every round's model, and the share of known items in the query it ranked."""
    lines: list[Line] = []
    rules: list[int] = []
    for scenario, share in results.settings:
        names = setting_names(results, scenario, share)
        if lines:
            rules.append(len(lines))
        for strategy in results.strategies:
            curves = results.get(scenario, share, strategy)
            if curves is None:
                continue
            for name, column in (("Acc", "accuracy"), ("%IN in S_Q", "query_known_share")):
                lines.append(Line((*names, strategy, name), 100 * mean_over_seeds(curves[column])))
    found = by_round(lines, every=every, rule_above=rules)
    return Table(
        title("Accuracy and share of known items in each query (%)", results),
        (*setting_columns(results), "strategy", "round", *found.columns),
        found.rows,
        ("Means over seeds. %IN in S_Q: the share of known items in the query that the round's model ranked.",),
        n_names=len(setting_columns(results)) + 2,
        rules=found.rules,
    )
