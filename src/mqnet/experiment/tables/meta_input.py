"""The paper's table of the net's inputs."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import by_setting, percent, setting_heads, title
from mqnet.experiment.tables._variants import inputs_of
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table

ABOUT_INPUTS = {"purity", "informativeness", "purity_options", "informativeness_options", "inputs"}


@kind_of_table("meta-input")
def meta_input(results: Results) -> Table:
    """Final accuracy of mqnet with each pair of purity and informativeness scores, below the other strategies."""
    variants = [
        name
        for name in results.strategies
        if results.plugin(name).name == "mqnet" and set(results.plugin(name).options) <= ABOUT_INPUTS
    ]
    others = [name for name in results.strategies if results.plugin(name).name != "mqnet"]
    columns, spans = setting_heads(results)
    body = by_setting(
        results,
        lambda curves: percent(curves["accuracy"][:, -1]),
        strategies=[*others, *variants],
        names=lambda strategy: (strategy, *inputs_of(results, strategy)),
        second=False,
    )
    return Table(
        title("Effect of the meta inputs: final accuracy (%)", results),
        ("strategy", "purity", "informativeness", *columns),
        body.rows if variants else (),
        ("Mean and standard deviation over seeds. Variants of mqnet that differ in more than inputs are left out.",),
        n_names=3,
        spans=spans,
        rules=(len(others),) if others and variants else (),
        best=body.best,
    )
