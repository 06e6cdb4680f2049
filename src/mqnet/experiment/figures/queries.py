"""What queries hold: known items over the rounds, stacked counts, and junk bought so far."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mqnet.experiment.figures.look import FONT, KNOWN_COLOUR, OOD_COLOUR
from mqnet.experiment.figures.sheet import legend, line, n_columns, name_axes, panels, plain, rounds_axis, sheet
from mqnet.experiment.results import Curves, Results
from mqnet.experiment.summary import wasted


def known_share_over_rounds(results: Results) -> Figure:
    """Share of known items in every round's query, a panel per scenario and OOD share."""

    def draw(axes: Axes, curves: Curves) -> None:
        share = curves["query_known_share"]
        line(axes, curves, np.arange(1, share.shape[1] + 1), share)
        axes.set_ylim(0, 1.03)

    return panels(results, draw, "round", "known in the query (%)", in_percent=True, rounds=True)


def wasted_labels(results: Results) -> Figure:
    """OOD labels bought by the queries so far, a panel per scenario and OOD share."""

    def draw(axes: Axes, curves: Curves) -> None:
        line(axes, curves, curves["spent"].mean(axis=0), wasted(curves))

    return panels(results, draw, "cost spent (c_IN = 1)", "OOD labels bought", in_percent=False, rounds=False)


def query_composition(results: Results, scenario: str, ood_share: float) -> Figure:
    """Known and OOD items in every query, stacked, a panel per strategy, mean over seeds."""
    found = [c for name in results.strategies if (c := results.get(scenario, ood_share, name)) is not None]
    figure, grid = sheet(len(found), shared_y=True, height=1.35)
    for i, (axes, curves) in enumerate(zip(grid, found, strict=True)):
        asked = curves.n_asked.mean(axis=0)
        share = curves["query_known_share"].mean(axis=0)
        rounds = np.arange(1, len(share) + 1)
        # the last query shows in no later row: it is as large as the one before it
        total = np.append(asked, asked[-1] if len(asked) else 1.0)
        axes.bar(rounds, share * total, color=KNOWN_COLOUR, label="known")
        axes.bar(rounds, (1 - share) * total, bottom=share * total, color=OOD_COLOUR, label="OOD", hatch="////", lw=0)
        name_axes(axes, "round", "items in the query" if i % n_columns(len(found)) == 0 else None)
        axes.set_title(plain(curves.strategy), fontsize=FONT, pad=3)
        rounds_axis(axes)
    legend(figure, grid)
    return figure
