"""The paper's table of the self-validation set."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._variants import ablation
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("self-validation")
def self_validation(results: Results) -> Table:
    """Final accuracy of mqnet trained on its answered queries, and on an independent random set of the same size."""
    return ablation(
        results,
        "Efficacy of the self-validation set",
        "validation",
        "learns from",
        {"query": "query set", "random": "random set"},
    )
