"""The kinds of figures that `mqnet figures` draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mqnet.errors import ConfigError, InputError, nearest_name
from mqnet.experiment.cells import Cell
from mqnet.experiment.figures.accuracy import accuracy_against_cost, accuracy_over_rounds
from mqnet.experiment.figures.landscape import landscapes
from mqnet.experiment.figures.longer import longer_rounds
from mqnet.experiment.figures.machine import time_and_memory
from mqnet.experiment.figures.precision import precision_against_accuracy
from mqnet.experiment.figures.purity import every_curve, purity_auroc
from mqnet.experiment.figures.queries import known_share_over_rounds, wasted_labels
from mqnet.experiment.figures.slope import slopes_over_rounds
from mqnet.experiment.results import Results
from mqnet.experiment.run import n_cores
from mqnet.experiment.tangents import has_mqnet, landscape_rows, slopes

LONG = 12
"""Rounds beyond which late differences deserve a figure of their own."""


@dataclass(frozen=True)
class Subject:
    """What is drawn: the finished results of a run, and its campaigns' cells in their folder."""

    out: Path
    cells: Sequence[Cell]
    results: Results


def _landscape(subject: Subject) -> Figure:
    return landscapes(landscape_rows(subject.out, subject.cells))


def _slope(subject: Subject) -> Figure:
    found = slopes(subject.out, subject.cells, n_cores())
    return slopes_over_rounds([(label, {s: v[0] for s, v in by.items()}) for label, by in found.items()])


OF_RESULTS: Mapping[str, Callable[[Results], Figure]] = {
    "accuracy": accuracy_over_rounds,
    "accuracy-cost": accuracy_against_cost,
    "known-share": known_share_over_rounds,
    "wasted": wasted_labels,
    "precision-accuracy": precision_against_accuracy,
    "auroc": purity_auroc,
    "longer": longer_rounds,
    "time-memory": time_and_memory,
}
"""Figures that `results.csv` is enough for."""

OF_RUN: Mapping[str, Callable[[Subject], Figure]] = {"landscape": _landscape, "slope": _slope}
"""Figures that take the campaigns themselves."""

KINDS = (*OF_RESULTS, *OF_RUN)

BANDS = "Means over seeds, bands of one standard deviation."
CAPTIONS: Mapping[str, str] = {
    "accuracy": f"Test accuracy of every round's model. {BANDS}",
    "accuracy-cost": f"Test accuracy against the cost of the labels behind it. {BANDS}",
    "known-share": f"Share of known items in every round's query. {BANDS}",
    "wasted": f"OOD labels bought by the queries, the initial sample left out. {BANDS}",
    "precision-accuracy": "Share of known items over all queries against mean accuracy over rounds 2 to the last. "
    "Bars: one standard deviation over seeds.",
    "auroc": f"How well the purity score tells known items from OOD ones. {BANDS}",
    "longer": f"Test accuracy over the rounds, and its paired lead over random. {BANDS}",
    "time-memory": "Mean seconds of a round by phase, and peak resident memory of the process that ran the campaign, "
    "libraries and data included (mark: mean over campaigns, line: range).",
    "landscape": "The score (bright is high) over informativeness (I) and purity (P), in deviations, one campaign a "
    "panel: the unlabelled pool, the round's query, and the tangent at its lowest-scored item; the steeper, the more "
    "informativeness counts.",
    "slope": "Steepness of the query's mean tangent: the higher, the more informativeness counts against purity. "
    "Medians over seeds, bands between quartiles; values beyond 0.05 and 20 are cut.",
}


def draw(kind: str, subject: Subject) -> Figure:
    """The figure of this kind; an unknown kind is an error that lists them."""
    if kind not in KINDS:
        raise ConfigError(f"no figure is called '{kind}'.{nearest_name(kind, KINDS)}")
    if not subject.results.settings:
        raise InputError(f"no cell of '{subject.out}' has finished yet: there is nothing to draw.")
    if kind in OF_RESULTS:
        return OF_RESULTS[kind](subject.results)
    return OF_RUN[kind](subject)


def drawable(subject: Subject) -> list[str]:
    """The kinds this run has something to show for."""
    out = [kind for kind in OF_RESULTS if kind not in ("auroc", "longer")]
    if any(not np.isnan(curves["purity_auroc"]).all() for curves in every_curve(subject.results)):
        out.append("auroc")
    if any(cell.config.campaign.rounds > LONG for cell in subject.cells):
        out.append("longer")
    if has_mqnet(subject.out, subject.cells):
        out += OF_RUN
    return out
