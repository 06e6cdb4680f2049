"""The learned score over purity and informativeness, with a query and its tangent (the paper's Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from mqnet.experiment.figures.look import FONT
from mqnet.experiment.figures.sheet import legend, name_axes, plain, sheet
from mqnet.loop.explain import Explanation

N_SHOWN = 2500
"""Unlabelled items drawn of a pool: more of them hide the score behind."""


def score_landscape(found: Explanation) -> Figure:
    """A round's pool in the plane of informativeness and purity, the score behind it, the query, and the tangent."""
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    drawn = _draw(axes, found, size=24.0)
    figure.colorbar(drawn, ax=axes, label="meta-score", shrink=0.85)
    name_axes(
        axes,
        plain(f"informativeness: {found.informativeness} (deviations)"),
        plain(f"purity: {found.purity} (deviations)"),
        f"round {found.round}",
    )
    legend(figure, [axes])
    return figure


def landscapes(rows: Sequence[Sequence[tuple[str, Explanation]]]) -> Figure:
    """A panel per titled explanation, row by row: say, over the rounds above and over the share of junk below."""
    columns = max(len(row) for row in rows)
    figure, grid = sheet(columns * len(rows), columns=columns, height=1.85)
    for i, row in enumerate(rows):
        for j, axes in enumerate(grid[i * columns : (i + 1) * columns]):
            axes.set_visible(j < len(row))
            axes.grid(visible=False)
            if j < len(row):
                title, found = row[j]
                _draw(axes, found, size=7.0)
                # P and I: the names of scores alone fill a small panel
                y = plain(f"P: {found.purity} (z)") if j == 0 else None
                name_axes(axes, plain(f"I: {found.informativeness} (z)"), y, title)
    legend(figure, grid)
    return figure


def _draw(axes: Axes, found: Explanation, size: float) -> QuadContourSet:
    grid = found.landscape
    filled = axes.contourf(grid.axis, grid.axis, grid.phi, levels=14, cmap="cividis")
    shown = found.pool[:: max(1, len(found.pool) // N_SHOWN)]
    axes.scatter(shown[:, 1], shown[:, 0], s=size / 7, color="#e8e8e8", alpha=0.55, lw=0, rasterized=True)
    # what the points look like is too small for a legend
    axes.scatter([], [], s=12, color="#d0d0d0", ec="#888888", lw=0.4, label="unlabelled")
    for known, mark, fill, label in ((True, "o", "#56B4E9", "asked: known"), (False, "X", "#D55E00", "asked: OOD")):
        rows = found.query[[answer is known for answer in found.answers]]
        axes.scatter(
            found.pool[rows, 1], found.pool[rows, 0], s=size, marker=mark, color=fill, ec="black",
            lw=0.3 + size / 120, label=label, rasterized=True,
        )  # fmt: skip
    if len(found.query) and np.isfinite(found.slope):
        lowest = found.query[found.phi[found.query].argmin()]
        purity, informativeness = found.pool[lowest].tolist()
        place = (informativeness, purity)
        axes.axline(place, slope=found.slope, color="white", lw=2.4)
        axes.axline(place, slope=found.slope, color="black", lw=1.1, ls="--", label="tangent at the lowest-scored item")
        axes.text(
            0.03, 0.04, f"slope {found.slope:.2f}", transform=axes.transAxes, fontsize=FONT,
            bbox={"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
    clip = float(grid.axis[-1])
    axes.set(xlim=(-clip, clip), ylim=(-clip, clip))
    return filled
