"""The paper's table of the learned balance against fixed ones."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import Line, by_round, mean_over_seeds, setting_columns, setting_names, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table
from mqnet.types import Plugin

RULES = {"sum": "P + I", "product": "P x I", "value": "value"}


@kind_of_table("meta-objective")
def meta_objective(results: Results, *, every: int = 1) -> Table:
    """Accuracy over rounds of mqnet and of fixed rules over purity and informativeness, the best of a round marked."""
    lines: list[Line] = []
    rules: list[int] = []
    for scenario, share in results.settings:
        names = setting_names(results, scenario, share)
        n_before = len(lines)
        for strategy in results.strategies:
            curves, rule = results.get(scenario, share, strategy), rule_of(results.plugin(strategy))
            if curves is None or rule is None:
                continue
            accuracy = 100 * mean_over_seeds(curves["accuracy"])
            lines.append(Line((*names, strategy, rule), accuracy, contest="/".join(names)))
        if 0 < n_before < len(lines):
            rules.append(n_before)
    found = by_round(lines, every=every, rule_above=rules)
    return Table(
        title("Efficacy of the meta-objective: accuracy (%) by round", results),
        (*setting_columns(results), "strategy", "rule", *found.columns),
        found.rows,
        ("Means over seeds. P + I adds exp(z) of both scores, P x I multiplies them, learned is the meta-query net.",),
        n_names=len(setting_columns(results)) + 2,
        rules=found.rules,
        best=found.best,
    )


def rule_of(plugin: Plugin) -> str | None:
    """How a strategy combines purity and informativeness; None where it does not combine the two."""
    if plugin.name in ("sum", "product"):
        return RULES[plugin.name]
    if plugin.name != "mqnet":
        return None
    combine = str(plugin.options.get("combine", "net"))
    return RULES.get(combine, "learned")
