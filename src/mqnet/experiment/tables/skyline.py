"""The paper's table of the skyline constraint."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._variants import ablation
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("skyline")
def skyline(results: Results) -> Table:
    """Final accuracy of mqnet with the skyline constraint and without (a plain MLP)."""
    return ablation(
        results,
        "Efficacy of the skyline constraint",
        "skyline",
        "net",
        {True: "w/ skyline", False: "w/o skyline"},
    )
