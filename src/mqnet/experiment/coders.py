"""The contrastive coders of a grid: each is trained once, before and beside the cells that do not need it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqnet.experiment.campaigns import cell_scenario
from mqnet.experiment.cells import Cell
from mqnet.loop.coders import CoderJob, FolderShelf, Space
from mqnet.loop.learner import SHARED
from mqnet.models.contrastive.config import KINDS
from mqnet.registry import load_plugin


@dataclass(frozen=True)
class CoderTask:
    """A coder that cells of a run share; `cell` is one of them."""

    out: Path
    cell: Cell
    column: str


def coder_tasks(out: Path, cells: Sequence[Cell]) -> list[CoderTask]:
    """One task for each coder these cells need, the longest first."""
    first: dict[tuple[str, str, float, int], CoderTask] = {}
    for cell in cells:
        for column in sorted(cell.coded):
            setting = (column, cell.config.scenario.label, cell.ood_share, cell.seed)
            first.setdefault(setting, CoderTask(out, cell, column))
    views = {column: cells[0].config.coder.n_views(kind) for column, kind in KINDS.items()} if cells else {}
    return sorted(first.values(), key=lambda task: -views[task.column])


def make_coder(task: CoderTask) -> Space:
    """The coder, trained if it is not there yet."""
    for plugin in task.cell.config.plugins:
        load_plugin(plugin)
    pool = cell_scenario(task.cell).pool
    job = CoderJob(KINDS[task.column], task.cell.config.coder, pool.fingerprint(), task.cell.seed)
    return FolderShelf(task.out / SHARED).space(job, pool)
