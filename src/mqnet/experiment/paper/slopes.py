"""Slopes of the tangent over the rounds, beside the two the paper prints."""

from __future__ import annotations

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.paper.press import Press
from mqnet.experiment.run import n_cores
from mqnet.experiment.tables.shape import Table
from mqnet.experiment.tangents import slopes

WHICH = ("of the whole query", "at its lowest-scored item (the paper's quantity)")


def slope_tables(press: Press) -> list[Table]:
    """Median slopes over seeds by strategy, OOD share and round; the paper's two where its share and round ran."""
    try:
        found = slopes(press.out, press.cells(), n_cores())
    except InputError:  # no campaign of mqnet has finished yet
        return []
    n_rounds = max(values.shape[2] for by_share in found.values() for values in by_share.values())
    out: list[Table] = []
    for which, name in enumerate(WHICH):
        rows: list[tuple[str, ...]] = []
        if which == 1:
            rows += [
                (f"{row} on {block.dataset}", f"{block.fixed:.0%}", "paper", *_at(block.at, values, n_rounds))
                for block in press.scaled.entry.reported
                for row, values in block.values.items()
            ]
        for label, by_share in found.items():
            for share, values in sorted(by_share.items()):
                middle = np.median(values[which], axis=0)
                rows.append((label, f"{share:.0%}", "here", *(f"{value:.2f}" for value in middle)))
        out.append(
            Table(
                f"slope of the tangent {name}, median over seeds: steeper (more negative) weighs informativeness more",
                ("strategy", "OOD", "", *(f"round {r}" for r in range(1, n_rounds + 1))),
                tuple(rows),
                n_names=3,
            )
        )
    return out


def _at(rounds: tuple[float, ...], values: tuple[float, ...], n_rounds: int) -> list[str]:
    printed = dict(zip(rounds, values, strict=True))
    return [f"{printed[r]:.2f}" if r in printed else "" for r in range(1, n_rounds + 1)]
