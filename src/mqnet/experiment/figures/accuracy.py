"""Accuracy over rounds (the paper's Figure 3) and against cost."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mqnet.experiment.figures.sheet import line, panels
from mqnet.experiment.results import Curves, Results


def accuracy_over_rounds(results: Results) -> Figure:
    """Test accuracy of every round's model, a panel per scenario and OOD share."""

    def draw(axes: Axes, curves: Curves) -> None:
        accuracy = curves["accuracy"]
        line(axes, curves, np.arange(1, accuracy.shape[1] + 1), accuracy)

    return panels(results, draw, "round", "test accuracy (%)", in_percent=True, rounds=True)


def accuracy_against_cost(results: Results) -> Figure:
    """Test accuracy against the cost of the labels behind it, a panel per scenario and OOD share."""

    def draw(axes: Axes, curves: Curves) -> None:
        line(axes, curves, curves["spent"].mean(axis=0), curves["accuracy"])

    return panels(results, draw, "cost spent (c_IN = 1)", "test accuracy (%)", in_percent=True, rounds=False)
