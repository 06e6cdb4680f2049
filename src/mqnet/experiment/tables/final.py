"""The paper's Table 1."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.summary import RANDOM
from mqnet.experiment.tables._layout import (
    by_setting,
    favourite_among,
    is_reference,
    percent,
    setting_heads,
    title,
)
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table


@kind_of_table("final")
def final(results: Results, *, favourite: str | None = None, deviation: bool = True) -> Table:
    """Accuracy after the last round per strategy, scenario and OOD share, and how far the favourite is ahead.

    Two rows below say by how many percent of theirs the favourite's mean lies above the second best's and above the
    least's other than random, as the paper's Table 1 has it; below zero where another is better.
    """
    mine = favourite_among(results, favourite)
    columns, spans = setting_heads(results)
    body = by_setting(results, lambda curves: percent(curves["accuracy"][:, -1], deviation))
    ahead = _improvements(results, mine)
    notes = ["Mean and standard deviation over seeds of the test accuracy after the last round, in percent."]
    if ahead:
        notes.append(
            f"Improvements of {mine} are relative, in percent: over the best other strategy, and over the lowest other "
            "than random."
        )
    if any(is_reference(results, name) for name in results.strategies):
        notes.append("Strategies that see the truth are reference lines: neither marked nor compared with.")
    return Table(
        title("Final accuracy (%)", results),
        ("strategy", *columns),
        (*body.rows, *ahead),
        tuple(notes),
        spans=spans,
        rules=(len(body.rows),) if ahead else (),
        best=body.best,
        second=body.second,
    )


def _improvements(results: Results, mine: str) -> tuple[tuple[str, ...], ...]:
    if is_reference(results, mine):
        return ()
    best: list[str] = [f"% {mine} over 2nd best"]
    least: list[str] = [f"% {mine} over the least"]
    for setting in results.settings:
        means = {
            name: float(curves["accuracy"][:, -1].mean())
            for name in results.strategies
            if not is_reference(results, name) and (curves := results.get(*setting, name)) is not None
        }
        own = means.pop(mine, None)
        best.append(_relative(own, max(means.values(), default=None)))
        named = [value for name, value in means.items() if results.plugin(name).name != RANDOM]
        least.append(_relative(own, min(named, default=None)))
    if any(text.startswith("-") for text in best):
        best[0] = f"% {mine} over the best other"  # it is not the best itself: "second best" would mislead
    return tuple(tuple(row) for row in (best, least) if any(row[1:]))


def _relative(own: float | None, other: float | None) -> str:
    if own is None or other is None or own != own or not other > 0:
        return ""
    return f"{100 * (own - other) / other:+.2f}"
