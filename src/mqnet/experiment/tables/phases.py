"""Time per phase."""

from __future__ import annotations

import numpy as np

from mqnet.experiment.results import Curves, Results
from mqnet.experiment.tables._layout import title
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table

PHASES = ("fit", "encode", "select", "learn")


@kind_of_table("time")
def phases(results: Results) -> Table:
    """Seconds a round takes in each phase, and a whole campaign: means over shares, seeds and rounds."""
    alone = len(results.scenarios) == 1
    rows: list[tuple[str, ...]] = []
    rules: list[int] = []
    for scenario in results.scenarios:
        if rows:
            rules.append(len(rows))
        for strategy in results.strategies:
            found = [results.get(name, share, strategy) for name, share in results.settings if name == scenario]
            curves = [one for one in found if one is not None]
            if curves:
                rows.append((*(() if alone else (scenario,)), strategy, *_times(curves)))
    names = ("strategy",) if alone else ("scenario", "strategy")
    return Table(
        title("Seconds per round and phase", results),
        (*names, *PHASES, "round", "campaign"),
        tuple(rows),
        ("fit: training the target model; encode: its pass over the pool; select: ranking the query; learn: what the "
         "strategy learns from the answers. Campaigns ran side by side on the machine that made the results.",),
        n_names=len(names),
        rules=tuple(rules),
    )  # fmt: skip


def _times(curves: list[Curves]) -> list[str]:
    by_phase = [np.concatenate([one[f"seconds_{phase}"].ravel() for one in curves]) for phase in PHASES]
    means = [float(np.nanmean(values)) if np.isfinite(values).any() else 0.0 for values in by_phase]
    # rounds that a campaign did not reach took no seconds
    campaigns = [
        sum(np.nansum([getattr(result, f"seconds_{phase}") for phase in PHASES]) for result in rounds)
        for one in curves
        for rounds in one.rows
    ]
    return [f"{value:.3g}" for value in (*means, sum(means), float(np.mean(campaigns)))]
