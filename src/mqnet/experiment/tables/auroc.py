"""The paper's table of OOD detection over rounds."""

from __future__ import annotations

import numpy as np

from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import Line, by_round, mean_over_seeds, setting_columns, setting_names, title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("auroc")
def auroc(results: Results, *, every: int = 1) -> Table:
    """How well each strategy's purity score tells known items from junk, round by round (area under the ROC curve)."""
    lines: list[Line] = []
    rules: list[int] = []
    for scenario, share in results.settings:
        names = setting_names(results, scenario, share)
        n_before = len(lines)
        for strategy in results.strategies:
            curves = results.get(scenario, share, strategy)
            values = mean_over_seeds(curves["purity_auroc"]) if curves is not None else np.array([])
            if np.isfinite(values).any():
                lines.append(Line((*names, strategy), values, digits=3, contest="/".join(names)))
        if 0 < n_before < len(lines):
            rules.append(n_before)
    found = by_round(lines, every=every, rule_above=rules)
    return Table(
        title("AUROC of the purity score by round", results),
        (*setting_columns(results), "strategy", *found.columns),
        found.rows,
        ("Over the unlabelled items of each round's pool; means over seeds. Strategies without a purity score are left "
         "out. Each strategy leaves another pool behind, so later rounds differ in what is left to tell apart.",),
        n_names=len(setting_columns(results)) + 1,
        rules=found.rules,
        best=found.best,
        second=found.second,
    )  # fmt: skip
