"""Sheets of panels at a paper's widths: axes with their names, a band of seeds, one legend on top, and files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from mqnet.experiment.figures.look import COLUMN, FONT, PAGE, look
from mqnet.experiment.results import Curves, Results
from mqnet.store.blobs import write_durably

Format = Literal["png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = ("png", "svg", "pdf")
DPI = 200
TITLE_LETTERS = 24
"""Letters of a title that fit over the narrowest panel."""
LETTERS = 0.062
"""Inches a letter of the legend takes at `FONT` points, about."""


def n_columns(n: int) -> int:
    """Panels side by side: all of them up to four."""
    return max(1, min(n, 4))


def sheet(
    n: int, *, height: float = 1.75, shared_y: bool = False, columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure with n panels: one at a column's width, several over the page's; `height` inches each."""
    across = columns or n_columns(n)
    down = max(1, -(-n // across))
    width = COLUMN if n == 1 else PAGE
    figure = Figure(figsize=(width, (height if n > 1 else 1.25 * height) * down + 0.3), layout="constrained")
    drawn: Any = figure.subplots(down, across, sharey=shared_y, squeeze=False)
    axes = list(drawn.flat)
    for spare in axes[n:]:
        spare.set_visible(False)
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.spines[["left", "bottom"]].set_linewidth(0.6)
        one.tick_params(labelsize=FONT - 0.5, width=0.6, length=2.5, pad=2)
        one.grid(alpha=0.25, lw=0.4)
        one.set_axisbelow(True)
    return figure, axes[:n]


def name_axes(axes: Axes, x: str, y: str | None, title: str = "") -> None:
    """The names of both axes with their units, and of the panel."""
    axes.set_xlabel(x, fontsize=FONT, labelpad=2)
    if y is not None:
        axes.set_ylabel(y, fontsize=FONT, labelpad=2)
    if title:
        axes.set_title(title, fontsize=FONT + 0.5, pad=3)


def percent(axes: Axes) -> None:
    """Ticks of the vertical axis in percent."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")


def rounds_axis(axes: Axes) -> None:
    """Ticks of the horizontal axis at whole rounds."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def line(axes: Axes, curves: Curves, x: np.ndarray, values: np.ndarray) -> None:
    """A strategy's mean over seeds [S, R] with a band of one standard deviation, over x [R]."""
    style = look(curves.strategy)
    # a round where no seed has a number has no mean
    there = ~np.isnan(values).all(axis=0)
    if not there.any():
        return
    x, values = x[there], values[:, there]
    mean = np.nanmean(values, axis=0)
    every = max(1, len(x) // 10)
    axes.plot(
        x, mean, style.line, color=style.colour, lw=style.width, marker=style.marker, ms=3.2, mfc=style.face, mew=0.8,
        markevery=every, label=plain(curves.strategy), zorder=3 if style.width > 1.5 else 2,
    )  # fmt: skip
    if len(values) > 1:
        deviation = np.nanstd(values, axis=0, ddof=1)
        axes.fill_between(x, mean - deviation, mean + deviation, color=style.colour, alpha=0.10, lw=0)


def panels(
    results: Results, draw: Callable[[Axes, Curves], None], x: str, y: str, *, in_percent: bool, rounds: bool,
    shared_y: bool = False, height: float = 1.75,
) -> Figure:  # fmt: skip
    """A panel per scenario and OOD share, every strategy in each, one legend."""
    figure, grid = sheet(len(results.settings), shared_y=shared_y, height=height)
    for i, (axes, (scenario, share)) in enumerate(zip(grid, results.settings, strict=True)):
        for strategy in results.strategies:
            curves = results.get(scenario, share, strategy)
            if curves is not None:
                draw(axes, curves)
        name_axes(axes, x, y if i % n_columns(len(grid)) == 0 else None, setting_title(results, scenario, share))
        if in_percent:
            percent(axes)
        if rounds:
            rounds_axis(axes)
    legend(figure, grid)
    return figure


def plain(text: str) -> str:
    """A name as matplotlib must be given it: a dollar would start mathematics, a leading underscore hide the label."""
    shown = text.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def setting_title(results: Results, scenario: str, share: float) -> str:
    """What stands above a setting's panel: of several scenarios also what tells its own from the others."""
    names = list(dict.fromkeys(name for name, _ in results.settings))
    if len(names) == 1:
        return f"{share:.0%} OOD"
    ends = [name.rpartition(", ")[2] for name in names]
    short = scenario.rpartition(", ")[2] if len(set(ends)) == len(ends) else scenario
    return "\n".join([*textwrap.wrap(plain(short), TITLE_LETTERS), f"{share:.0%} OOD"])


def legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """One legend above the panels: every label once, in as many columns as fit the width."""
    found: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    widest = max(map(len, found)) * LETTERS + 0.4
    columns = max(1, min(len(found), int(figure.get_figwidth() / widest)))
    figure.legend(
        found.values(), found.keys(), loc="outside upper center", ncols=columns, frameon=False, fontsize=FONT,
        handlelength=1.8, columnspacing=1.0, labelspacing=0.25, borderaxespad=0.1,
    )  # fmt: skip


def svg(figure: Figure) -> str:
    """A figure as SVG text, the same for the same results: a fixed salt and no date."""
    text = io.StringIO()
    with rc_context({"svg.hashsalt": "mqnet", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, dpi=DPI)
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]


def save(figure: Figure, path: Path, form: Format) -> None:
    """Write a figure to a file, whole or not at all."""
    content = io.BytesIO()
    if form == "svg":
        content.write(svg(figure).encode())
    elif form == "pdf":
        figure.savefig(content, format="pdf", metadata={"CreationDate": None}, dpi=DPI)
    else:
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=DPI)
        # a palette holds all that a figure shows, in a third of the bytes; this one also keeps colours of few pixels
        with Image.open(drawn) as picture:
            reduced = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        reduced.save(content, format="png", optimize=True, dpi=(DPI, DPI))
    write_durably(path, content.getvalue())
