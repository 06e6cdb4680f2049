"""`mqnet list`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mqnet.registry import DATASET, ENCODER, INFORMATIVENESS, MODEL, PURITY, STRATEGY, Entry, Registry, load_plugin

KINDS: tuple[tuple[str, Registry], ...] = (
    ("strategies", STRATEGY),
    ("purity scores", PURITY),
    ("informativeness scores", INFORMATIVENESS),
    ("models", MODEL),
    ("data sets", DATASET),
    ("encoders", ENCODER),
)


def show(as_json: bool, plugins: Sequence[Path]) -> None:
    """Every registered plug-in with a line each and what it needs."""
    for plugin in plugins:
        load_plugin(plugin)
    found = {kind: [registry.get(name) for name in registry.names()] for kind, registry in KINDS}
    if as_json:
        print(json.dumps({kind: [_record(entry) for entry in entries] for kind, entries in found.items()}, indent=2))
        return
    console = Console()
    for kind, entries in found.items():
        table = Table(title=kind, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=True)
        table.add_column("name", no_wrap=True)
        table.add_column("needs", no_wrap=True, style="dim")
        table.add_column("what it is")
        for entry in entries:
            table.add_row(entry.name, ", ".join(sorted(_needs(entry))) or "-", entry.summary)
        console.print(table)
        console.print()


def _needs(entry: Entry) -> frozenset[str]:
    if entry.kind == "strategy":
        needs: frozenset[str] = entry.target().needs
        return needs
    return entry.needs


def _record(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "needs": sorted(_needs(entry)),
        "summary": entry.summary,
        "options": {name: str(value) for name, value in entry.options.items()},
        "reference": entry.reference,
    }
