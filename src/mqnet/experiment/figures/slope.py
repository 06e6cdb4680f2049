"""How much informativeness counts against purity, over the rounds and over the share of junk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from mqnet.experiment.figures.look import FONT
from mqnet.experiment.figures.sheet import legend, n_columns, name_axes, plain, rounds_axis, sheet

# light to dark: little junk to much, readable in grey too
SHADES = ("#56B4E9", "#0072B2", "#CC79A7", "#882255", "#000000")
MARKERS = ("o", "s", "^", "D", "v")
FLOOR, CEILING = 0.05, 20.0
"""Beyond these one of the two scores does not count at all, and the ratio says nothing more."""

TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)

Slopes = Mapping[float, np.ndarray]
"""Slopes of whole queries [seeds, rounds] by OOD share."""


def slopes_over_rounds(found: Sequence[tuple[str, Slopes]]) -> Figure:
    """The steepness of the query's mean tangent over the rounds, a panel per strategy and a line per OOD share.

    Medians over seeds with the range between quartiles: a slope is a ratio, and one flat spot would decide a mean.
    """
    figure, grid = sheet(len(found), height=1.9, shared_y=True)
    lowest: list[float] = []
    highest: list[float] = []
    for i, (axes, (label, by_share)) in enumerate(zip(grid, found, strict=True)):
        for (share, slopes), shade, marker in zip(sorted(by_share.items()), SHADES, MARKERS, strict=False):
            steep = np.clip(-slopes, FLOOR, CEILING)
            rounds = np.arange(1, steep.shape[1] + 1)
            low, middle, high = np.quantile(steep, [0.25, 0.5, 0.75], axis=0)
            lowest.append(float(middle.min()))
            highest.append(float(middle.max()))
            axes.plot(rounds, middle, color=shade, marker=marker, ms=3, lw=1.1, label=f"{share:.0%} OOD")
            axes.fill_between(rounds, low, high, color=shade, alpha=0.10, lw=0)
        axes.set_yscale("log")
        axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.axhline(1, color="#777777", lw=0.7, ls="--")
        axes.text(0.98, 1.05, "both count alike", fontsize=FONT - 1, ha="right", color="#555555",
                  transform=axes.get_yaxis_transform())  # fmt: skip
        name_axes(axes, "round", "minus the slope (log scale)" if i % n_columns(len(grid)) == 0 else None, plain(label))
        rounds_axis(axes)
    grid[0].set_ylim(max(min(lowest) / 1.6, FLOOR / 1.1), min(max(highest) * 1.6, CEILING * 1.1))
    legend(figure, grid)
    return figure
