"""The numbers the paper reports, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

Axis = Literal["ood_share", "cost_ood", "round"]


@dataclass(frozen=True)
class Footnote:
    """What is wrong with a printed number: its row, its place on the axis, and the remark."""

    row: str
    at: float
    text: str


@dataclass(frozen=True)
class Block:
    """One table of the paper on one data set: a value per row and place on the axis, as printed.

    `measure` names a column of the results (`accuracy`, `query_known_share`, `purity_auroc`) or `slope`; accuracies and
    shares are percent. `fixed` is the OOD share where it is no axis. `improvement` holds the printed relative leads.
    """

    name: str
    dataset: str
    measure: str
    axis: Axis
    at: tuple[float, ...]
    values: Mapping[str, tuple[float, ...]]
    deviations: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    improvement: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    fixed: float | None = None
    footnotes: tuple[Footnote, ...] = ()

    def note(self, row: str, at: float) -> Footnote | None:
        """The footnote of a printed number, if it has one."""
        return next((note for note in self.footnotes if note.row == row and note.at == at), None)


@cache
def all_blocks() -> tuple[Block, ...]:
    """Every block, in the file's order."""
    raw = tomllib.loads(files("mqnet.experiment.paper").joinpath("reported.toml").read_text(encoding="utf-8"))
    return tuple(_block(dict(one)) for one in raw["block"])


def blocks(name: str) -> tuple[Block, ...]:
    """The blocks of this name: a table of the paper, once per data set, measure or share."""
    return tuple(block for block in all_blocks() if block.name == name)


def _block(raw: dict[str, object]) -> Block:
    for key in ("values", "deviations", "improvement"):
        rows = raw.get(key, {})
        assert isinstance(rows, dict)
        raw[key] = {row: tuple(values) for row, values in rows.items()}
    notes = raw.get("footnotes", [])
    assert isinstance(notes, list)
    raw["footnotes"] = tuple(Footnote(**note) for note in notes)
    at = raw["at"]
    assert isinstance(at, list)
    raw["at"] = tuple(at)
    return Block(**raw)  # pyright: ignore[reportArgumentType]  # a file of this package
