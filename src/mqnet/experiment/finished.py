"""How far a grid is: what has finished, what failed and why, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqnet.experiment.cells import Cell
from mqnet.experiment.stored import cell_folder


@dataclass(frozen=True)
class Standing:
    """Campaigns of a grid: in all, finished, failed (title and reason), and neither."""

    n_cells: int
    n_finished: int
    failed: tuple[tuple[str, str], ...]

    @property
    def n_missing(self) -> int:
        """Campaigns that neither finished nor failed."""
        return self.n_cells - self.n_finished - len(self.failed)


def _reason(note: str) -> str:
    """The last line of what a failed campaign's note tells between its title and its configuration."""
    told = note.partition("\n\n")[2].partition("\n\nstrategy: ")[0].strip()
    return told.splitlines()[-1] if told else "no reason was kept"


def standing(out: Path, cells: Sequence[Cell]) -> Standing:
    """The standing of a grid's cells in a folder; a campaign that failed and then finished has finished."""
    finished = 0
    failed: list[tuple[str, str]] = []
    for cell in {cell.digest: cell for cell in cells}.values():
        folder = cell_folder(out, cell)
        if (folder / "rounds.json").is_file():
            finished += 1
        elif (folder / "error.txt").is_file():
            failed.append((cell.title, _reason((folder / "error.txt").read_text(encoding="utf-8"))))
    return Standing(len({cell.digest for cell in cells}), finished, tuple(failed))
