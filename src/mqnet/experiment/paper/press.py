"""Running an entry, and the page about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.paper.scales import Scaled
from mqnet.experiment.results import Results, Row, write_rows
from mqnet.experiment.run import Progress, collect, run_experiment
from mqnet.experiment.stored import CONFIG, RESULTS
from mqnet.store.blobs import write_durably


@dataclass(frozen=True)
class Press:
    """An entry at a scale in a folder: campaigns of all entries lie together in it, so that what they share runs once.

    What is about the entry alone goes to `OUT/NAME` (results, figures, report), its page beside that: `OUT/NAME.md`.
    """

    scaled: Scaled
    out: Path

    @property
    def place(self) -> Path:
        """The entry's own folder."""
        return self.out / self.scaled.entry.name

    @property
    def page(self) -> Path:
        """Where the entry's page goes."""
        return self.out / f"{self.scaled.entry.name}.md"

    def cells(self) -> list[Cell]:
        """Every campaign."""
        return grid(self.scaled.config)

    def run(self, jobs: int) -> Iterator[Progress]:
        """Run what is missing."""
        yield from run_experiment(self.scaled.config, self.out, jobs=jobs)

    def rows(self) -> list[Row]:
        """The finished campaigns' rows; also written to the entry's folder, beside the experiment they are of."""
        rows = collect(self.out, self.cells())
        self.place.mkdir(parents=True, exist_ok=True)
        write_durably(self.place / CONFIG, self.scaled.config.model_dump_json(indent=2).encode())
        write_rows(self.place / RESULTS, rows)
        return rows

    def results(self) -> Results:
        """The finished campaigns' curves."""
        plugins = {cell.strategy_label: cell.strategy for cell in self.cells()}
        return Results(self.rows(), plugins)
