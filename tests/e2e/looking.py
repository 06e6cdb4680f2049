"""What a run left on disk, in a form that can be compared."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

REPEATABLE = {
    "answers": "SELECT round, position, item, kind, name, cost FROM answers ORDER BY round, position",
    "rankings": "SELECT round, position, item, score FROM candidates ORDER BY round, position",
    "arrays": "SELECT round, budget, closed, state_before, snapshot, model, state_after FROM rounds ORDER BY round",
}


def rows_of(out: Path) -> list[dict[str, str]]:
    """The rows of `results.csv` but for what a clock and the machine's memory decide."""
    with (out / "results.csv").open(newline="") as file:
        return [
            {k: v for k, v in row.items() if not k.startswith(("seconds_", "peak_"))} for row in csv.DictReader(file)
        ]


def campaign_of(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Ledger, rankings and array digests of a campaign."""
    with closing(sqlite3.connect(f"file:{folder / 'campaign.db'}?mode=ro", uri=True)) as database:
        return {name: database.execute(query).fetchall() for name, query in REPEATABLE.items()}


def everything_of(out: Path) -> dict[str, object]:
    """All that two runs of one grid must share."""
    cells = {cell.name: campaign_of(cell) for cell in sorted((out / "cells").iterdir())}
    return {"rows": rows_of(out), **cells}


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, locks and SQLite's own companions left out."""
    passing = ("loop.lock", "-wal", "-shm")
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith(passing))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
