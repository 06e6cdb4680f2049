"""Accuracy over many rounds, with the lead over random beneath: late differences are small against the climb."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mqnet.experiment.figures.sheet import legend, line, name_axes, percent, rounds_axis, setting_title, sheet
from mqnet.experiment.results import Results
from mqnet.experiment.summary import RANDOM


def longer_rounds(results: Results) -> Figure:
    """Test accuracy over the rounds above, its paired difference to random in points below, a column per setting."""
    settings = results.settings
    figure, grid = sheet(2 * len(settings), columns=len(settings) if len(settings) > 1 else 2, height=2.1)
    n = len(settings)
    for i, (scenario, share) in enumerate(settings):
        above, below = (grid[i], grid[i + n])
        for strategy in results.strategies:
            curves = results.get(scenario, share, strategy)
            pair = results.paired(scenario, share, strategy, RANDOM) if strategy != RANDOM else None
            if curves is not None:
                accuracy = curves["accuracy"]
                line(above, curves, np.arange(1, accuracy.shape[1] + 1), accuracy)
            if pair is not None:
                n_rounds = min(one["accuracy"].shape[1] for one in pair)
                mine, other = (one["accuracy"][:, :n_rounds] for one in pair)
                line(below, pair[0], np.arange(1, n_rounds + 1), 100 * (mine - other))
        below.axhline(0, color="#777777", lw=0.8, ls="--")
        name_axes(above, "round", "test accuracy (%)", setting_title(results, scenario, share))
        name_axes(below, "round", "minus random (points)", "" if n > 1 else "difference to random")
        percent(above)
        rounds_axis(above)
        rounds_axis(below)
    legend(figure, grid)
    return figure
