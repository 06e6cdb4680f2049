"""What each name of `mqnet paper` compares: a small file of its own under `entries/`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from mqnet.errors import ConfigError, nearest_name
from mqnet.experiment.paper.reported import Block, blocks

NAMES = (
    "table1", "figure1", "figure3", "figure4", "meta-input", "self-validation", "skyline", "meta-objective",
    "ood-cost", "query-purity", "auroc", "cross", "longer-rounds",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One table or figure of the paper: the grid it takes and what the paper says about it.

    `strategies` are the grid's; `paper_rows` maps their labels to rows of the paper's table. `figures` are kinds that
    `mqnet figures` draws.
    """

    name: str
    title: str
    claims: str
    kind: Literal["split", "cross"]
    ood_share: tuple[float, ...]
    costs_ood: tuple[float, ...]
    rounds: int
    strategies: tuple[dict[str, Any], ...]
    paper_rows: Mapping[str, str]
    figures: tuple[str, ...]
    reported: tuple[Block, ...]
    notes: tuple[str, ...]


@cache
def entry(name: str) -> Entry:
    """The entry of this name; an unknown one is an error that lists them."""
    if name not in NAMES:
        raise ConfigError(f"the paper has no '{name}' here.{nearest_name(name, NAMES)}")
    text = files("mqnet.experiment.paper").joinpath("entries", f"{name}.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    choices = [dict(choice) for choice in raw["strategies"]]
    rows = {str(choice.get("label", choice["name"])): choice.pop("paper", None) for choice in choices}
    return Entry(
        name=name,
        title=raw["title"],
        claims=raw["claims"],
        kind=raw.get("kind", "split"),
        ood_share=tuple(raw["ood_share"]),
        costs_ood=tuple(raw.get("costs_ood", [1.0])),
        rounds=raw.get("rounds", 10),
        strategies=tuple(choices),
        paper_rows={label: row for label, row in rows.items() if row is not None},
        figures=tuple(raw["figures"]),
        reported=blocks(raw["reported"]) if "reported" in raw else (),
        notes=tuple(raw.get("notes", [])),
    )
