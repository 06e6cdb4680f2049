"""Time and memory a strategy takes."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mqnet.experiment.figures.look import COLUMN, FONT, look
from mqnet.experiment.figures.purity import every_curve
from mqnet.experiment.figures.sheet import legend, name_axes, plain, sheet
from mqnet.experiment.results import Results

PHASES = {"fit": "#0072B2", "encode": "#56B4E9", "select": "#E69F00", "learn": "#D55E00"}
HATCHES = {"fit": "", "encode": "....", "select": "////", "learn": "xxxx"}
NAMES = {"fit": "train the model", "encode": "pass over the pool", "select": "rank", "learn": "learn from answers"}


def time_and_memory(results: Results) -> Figure:
    """Seconds of a round by phase, and the highest resident memory, for every strategy over all settings and seeds.

    Memory is the process's, with libraries and data: what a machine must have, not what the strategy alone takes.
    """
    curves = {name: [c for c in every_curve(results) if c.strategy == name] for name in results.strategies}
    peaks = {name: np.concatenate([c["peak_mb"].max(axis=1) for c in found]) for name, found in curves.items()}
    measured = any(not np.isnan(values).all() for values in peaks.values())
    figure, grid = sheet(2 if measured else 1, height=0.6 + 0.16 * len(curves), shared_y=True)
    if not measured:
        figure.set_figwidth(COLUMN)
    places = np.arange(len(curves))[::-1]
    left = np.zeros(len(curves))
    for phase, fill in PHASES.items():
        seconds = np.array(
            [np.concatenate([c[f"seconds_{phase}"].ravel() for c in found]).mean() for found in curves.values()]
        )
        grid[0].barh(
            places, seconds, left=left, color=fill, hatch=HATCHES[phase], ec="white", lw=0.2, label=NAMES[phase]
        )
        left += seconds
    grid[0].set_yticks(places, list(map(plain, curves)), fontsize=FONT)
    name_axes(grid[0], "seconds a round, one thread", None)
    if measured:
        for place, (name, values) in zip(places, peaks.items(), strict=True):
            style = look(name)
            found = values[~np.isnan(values)] / 1024
            if len(found):
                grid[1].plot([found.min(), found.max()], [place, place], color=style.colour, lw=1.0)
                grid[1].plot(found.mean(), place, style.marker, color=style.colour, mfc=style.face, ms=4.5)
        grid[1].set_xlim(left=0)
        name_axes(grid[1], "peak memory of the process (GB)", None)
    legend(figure, grid)
    return figure
