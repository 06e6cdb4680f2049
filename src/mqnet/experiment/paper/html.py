"""The report of an entry: the usual one of its grid, with the paper's numbers first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqnet.experiment.finished import standing
from mqnet.experiment.paper.press import Press
from mqnet.experiment.report import Subject, render
from mqnet.experiment.results import Results
from mqnet.experiment.tables.shape import Table
from mqnet.store.blobs import write_durably


def write_page(press: Press, results: Results, shown: Sequence[Table]) -> Path:
    """Write `OUT/NAME/report.html` and return its path."""
    cells = press.cells()
    subject = Subject(
        press.scaled.config,
        cells,
        results,
        standing(press.out, cells),
        heading=press.scaled.entry.title,
        label=press.scaled.label,
        first=shown,
    )
    path = press.place / "report.html"
    write_durably(path, render(subject).encode())
    return path
