"""Precision against accuracy: does a purer query make a better model?"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from mqnet.experiment.figures.look import look
from mqnet.experiment.figures.sheet import legend, n_columns, name_axes, percent, plain, setting_title, sheet
from mqnet.experiment.results import Results
from mqnet.experiment.statistics import aulc


def precision_against_accuracy(results: Results) -> Figure:
    """A point per strategy: share of known items over all its queries, and its mean accuracy over the rounds.

    Bars are standard deviations over seeds. Purer queries are not better models by themselves: points high on the left
    bought fewer known items, but more telling ones.
    """
    figure, grid = sheet(len(results.settings), height=1.85)
    for i, (axes, (scenario, share)) in enumerate(zip(grid, results.settings, strict=True)):
        for strategy in results.strategies:
            curves = results.get(scenario, share, strategy)
            if curves is None:
                continue
            known, accuracy = np.nanmean(curves["query_known_share"], axis=1), aulc(curves["accuracy"])
            style, many = look(strategy), len(curves.seeds) > 1
            axes.errorbar(
                100 * known.mean(), accuracy.mean(),
                xerr=100 * known.std(ddof=1) if many else None, yerr=accuracy.std(ddof=1) if many else None,
                fmt=style.marker, color=style.colour, mfc=style.face, ms=5, mew=1.0, lw=0.6, ls="none",
                alpha=0.95, label=plain(strategy), zorder=3 if style.width > 1.5 else 2,
            )  # fmt: skip
        left = i % n_columns(len(grid)) == 0
        title = setting_title(results, scenario, share)
        name_axes(axes, "known items in queries (%)", "mean accuracy, rounds 2 on (%)" if left else None, title)
        percent(axes)
    legend(figure, grid)
    return figure
