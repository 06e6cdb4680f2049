"""How well a purity score tells known items from junk, over the rounds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mqnet.errors import InputError
from mqnet.experiment.figures.sheet import line, panels
from mqnet.experiment.results import Curves, Results


def purity_auroc(results: Results) -> Figure:
    """AUROC of the purity score over what is unlabelled, a panel per setting; strategies without one are left out."""
    if all(np.isnan(curves["purity_auroc"]).all() for curves in every_curve(results)):
        raise InputError("no strategy of this run has a purity score: there is no AUROC to draw.")

    def draw(axes: Axes, curves: Curves) -> None:
        area = curves["purity_auroc"]
        line(axes, curves, np.arange(1, area.shape[1] + 1), area)

    return panels(results, draw, "round", "AUROC of the purity score", in_percent=False, rounds=True)


def every_curve(results: Results) -> list[Curves]:
    """All curves, setting by setting."""
    return [
        curves
        for scenario, share in results.settings
        for strategy in results.strategies
        if (curves := results.get(scenario, share, strategy)) is not None
    ]
