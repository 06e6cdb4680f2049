"""Figures of a grid as SVG: the same colour for the same strategy everywhere, safe for colour-blind readers."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mqnet.experiment.results import Curves, Results
from mqnet.experiment.summary import wasted
from mqnet.loop.explain import Explanation

# Okabe and Ito's palette; the strategies people compare most get the colours that differ most
COLOURS = {
    "mqnet": "#D55E00",
    "random": "#7F7F7F",
    "confidence": "#0072B2",
    "oracle-purity": "#000000",
    "sum": "#56B4E9",
    "product": "#009E73",
    "margin": "#CC79A7",
    "entropy": "#E69F00",
    "coreset": "#8C564B",
    "ll": "#9467BD",
    "badge": "#17BECF",
    "ccal": "#BCBD22",
    "similar": "#E377C2",
}
SPARE = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#9467BD", "#17BECF")
DASHED = ("random", "oracle-purity")
KNOWN_COLOUR, OOD_COLOUR = "#0072B2", "#E69F00"


def colour(strategy: str) -> str:
    """The colour of a strategy: fixed for those that ship, derived from the name for others."""
    if strategy in COLOURS:
        return COLOURS[strategy]
    return SPARE[sum(map(ord, strategy)) % len(SPARE)]


def accuracy_against_cost(results: Results) -> str:
    """Test accuracy against cost spent, a panel per setting: mean over seeds, band of one standard deviation."""

    def draw(axes: Axes, curves: Curves) -> None:
        _line(axes, curves, curves["spent"].mean(axis=0), curves["accuracy"])

    return _panels(results, draw, "cost spent", "test accuracy", percent=True)


def wasted_labels(results: Results) -> str:
    """Labels spent on junk by the queries so far, a panel per setting."""

    def draw(axes: Axes, curves: Curves) -> None:
        _line(axes, curves, curves["spent"].mean(axis=0), wasted(curves))

    return _panels(results, draw, "cost spent", "OOD labels bought (cumulative)", percent=False)


def query_composition(results: Results, scenario: str, ood_share: float) -> str:
    """Known and OOD items in every query, stacked, a panel per strategy, mean over seeds."""
    found = [c for name in results.strategies if (c := results.get(scenario, ood_share, name)) is not None]
    figure, grid = _grid(len(found), width=3.3, height=2.0, shared_y=True)
    for axes, curves in zip(grid, found, strict=False):
        asked = curves.n_asked.mean(axis=0)
        share = curves["query_known_share"].mean(axis=0)
        rounds = np.arange(1, len(share) + 1)
        # the last query shows in no later row: it is as large as the one before it
        total = np.append(asked, asked[-1] if len(asked) else 1.0)
        axes.bar(rounds, share * total, color=KNOWN_COLOUR, label="known")
        axes.bar(rounds, (1 - share) * total, bottom=share * total, color=OOD_COLOUR, label="OOD", hatch="///", lw=0)
        axes.set_title(curves.strategy, fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("round")
    for axes in grid[:: _n_columns(len(found))]:
        axes.set_ylabel("items in the query")
    return _svg(figure, grid[0].get_legend_handles_labels())


def score_landscape(found: Explanation) -> str:
    """A round's pool in the plane of informativeness and purity, contours of the score, the query, and the tangent."""
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    grid = found.landscape
    filled = axes.contourf(grid.axis, grid.axis, grid.phi, levels=14, cmap="cividis", alpha=0.85)
    figure.colorbar(filled, ax=axes, label="meta-score", shrink=0.85)
    shown = found.pool[:: max(1, len(found.pool) // 3000)]
    axes.scatter(shown[:, 1], shown[:, 0], s=5, color="#e8e8e8", alpha=0.6, lw=0, label="unlabelled")
    for known, mark, fill, label in ((True, "o", "#56B4E9", "asked: known"), (False, "X", "#D55E00", "asked: OOD")):
        rows = found.query[[answer is known for answer in found.answers]]
        axes.scatter(
            found.pool[rows, 1], found.pool[rows, 0], s=26, marker=mark, color=fill, ec="black", lw=0.5, label=label
        )
    if len(found.query) and np.isfinite(found.slope):
        lowest = found.query[found.phi[found.query].argmin()]
        purity, informativeness = found.pool[lowest].tolist()
        place, name = (informativeness, purity), f"slope {found.slope:.2f}"
        axes.axline(place, slope=found.slope, color="white", lw=3.0)
        axes.axline(place, slope=found.slope, color="black", lw=1.4, ls="--", label=name)
    clip = float(grid.axis[-1])
    axes.set(xlim=(-clip, clip), ylim=(-clip, clip))
    axes.set_xlabel(f"informativeness: {found.informativeness} (deviations)", fontsize=9)
    axes.set_ylabel(f"purity: {found.purity} (deviations)", fontsize=9)
    axes.set_title(f"round {found.round}", fontsize=9)
    return _svg(figure, axes.get_legend_handles_labels())


def _line(axes: Axes, curves: Curves, x: np.ndarray, values: np.ndarray) -> None:
    mean = np.nanmean(values, axis=0)
    style = "--" if curves.strategy in DASHED else "-"
    axes.plot(x, mean, style, color=colour(curves.strategy), lw=1.8, label=curves.strategy)
    if len(values) > 1:
        deviation = np.nanstd(values, axis=0, ddof=1)
        axes.fill_between(x, mean - deviation, mean + deviation, color=colour(curves.strategy), alpha=0.13, lw=0)


def _panels(results: Results, draw: Callable[[Axes, Curves], None], x: str, y: str, *, percent: bool) -> str:
    n = len(results.settings)
    figure, grid = _grid(n, width=4.4 if n > 1 else 7.0, height=3.2, shared_y=False)
    for axes, (scenario, share) in zip(grid, results.settings, strict=False):
        for strategy in results.strategies:
            curves = results.get(scenario, share, strategy)
            if curves is not None:
                draw(axes, curves)
        axes.set_title(f"{scenario}, {share:.0%} OOD", fontsize=9)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(alpha=0.25)
        if percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return _svg(figure, grid[0].get_legend_handles_labels())


def _n_columns(n: int) -> int:
    return n if n == 1 else 4 if n > 4 else 2


def _grid(n: int, *, width: float, height: float, shared_y: bool) -> tuple[Figure, list[Axes]]:
    n_columns = max(1, _n_columns(n))
    n_rows = max(1, -(-n // n_columns))
    figure = Figure(figsize=(width * n_columns, height * n_rows + 0.4), layout="constrained")
    drawn: Any = figure.subplots(n_rows, n_columns, sharey=shared_y, squeeze=False)
    axes = list(drawn.flat)
    for spare in axes[n:]:
        spare.set_visible(False)
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=8)
        one.xaxis.label.set_size(9)
        one.yaxis.label.set_size(9)
    return figure, axes


def _svg(figure: Figure, legend: tuple[Sequence[Any], Sequence[Any]]) -> str:
    handles, labels = legend
    figure.legend(
        handles, labels, loc="outside upper center", ncols=min(len(labels), 6) or 1, frameon=False, fontsize=9
    )
    text = io.StringIO()
    # a fixed salt and no date: the same results give the same file
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "mqnet", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]
