"""Where a run stands, seen from its folder: what is done, what runs and in which round, what failed, who leads."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mqnet.experiment.cells import Cell
from mqnet.experiment.results import Results, Row
from mqnet.experiment.statistics import aulc
from mqnet.experiment.stored import cell_folder
from mqnet.experiment.summary import ORACLE
from mqnet.store.campaign import DATABASE

DONE, FAILED, LOCK = "rounds.json", "error.txt", "loop.lock"


@dataclass(frozen=True)
class Running:
    """A cell that a process works on: the round it is in, of how many, and for how many seconds."""

    cell: Cell
    round: int
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Leader:
    """The strategy with the highest mean AULC so far, over settings and seeds in which every strategy has finished."""

    strategy: str
    aulc: float
    n_blocks: int


@dataclass(frozen=True)
class Standing:
    """How far a run is; `seconds_left` is None where nothing tells."""

    total: int
    done: int
    failed: int
    running: tuple[Running, ...]
    seconds_left: float | None
    leader: Leader | None

    @property
    def ended(self) -> int:
        """Cells that are done or have failed."""
        return self.done + self.failed


def standing(out: Path, cells: Sequence[Cell], rows: Sequence[Row], now: float) -> Standing:
    """Where the cells of a run stand, from its folder and the rows of finished ones; `now` is the time of day."""
    n_done = n_failed = 0
    running: list[Running] = []
    waiting: list[Cell] = []
    for cell in cells:
        folder = cell_folder(out, cell)
        if (folder / DONE).is_file():
            n_done += 1
            continue
        begun = _begun(folder)
        if begun is None and (folder / FAILED).is_file():
            n_failed += 1
            continue
        waiting.append(cell)
        if begun is not None:
            running.append(Running(cell, _round_of(folder), cell.config.campaign.rounds, max(0.0, now - begun)))
    strategies = {cell.strategy_label: cell.strategy.name for cell in cells}
    left = _seconds_left(seconds_of(rows), running, waiting)
    return Standing(len(cells), n_done, n_failed, tuple(running), left, leader_of(rows, strategies))


def _seconds_left(
    seconds: Mapping[tuple[str, str], float], running: Sequence[Running], waiting: Sequence[Cell]
) -> float | None:
    if not waiting:
        return 0.0
    if not seconds or not running:
        return None  # nothing is known of how long cells take, or nobody works on them
    spent = sum(min(one.seconds, _expected(seconds, one.cell)) for one in running)
    return max(0.0, sum(_expected(seconds, cell) for cell in waiting) - spent) / len(running)


def seconds_of(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Mean seconds of a finished cell by scenario and strategy, and by ('', '') of any: what its rounds took."""
    total: dict[str, tuple[tuple[str, str], float]] = {}
    for row in rows:
        result = row.result
        phases = (result.seconds_fit, result.seconds_encode, result.seconds_select, result.seconds_learn)
        took = sum(value for value in phases if value == value)
        total[row.cell] = ((row.scenario, row.strategy), total.get(row.cell, (None, 0.0))[1] + took)
    by_kind: dict[tuple[str, str], list[float]] = {}
    for kind, seconds in total.values():
        by_kind.setdefault(kind, []).append(seconds)
        by_kind.setdefault(("", ""), []).append(seconds)
    return {kind: float(np.mean(values)) for kind, values in by_kind.items()}


def _expected(seconds: Mapping[tuple[str, str], float], cell: Cell) -> float:
    return seconds.get((cell.config.scenario.label, cell.strategy_label), seconds["", ""])


def leader_of(rows: Sequence[Row], strategies: Mapping[str, str]) -> Leader | None:
    """Who leads among the strategies that do not see the truth, where all of them have finished; None before that."""
    contest = [label for label, name in strategies.items() if name != ORACLE]
    results = Results(rows)
    blocks: list[list[float]] = []
    for setting in results.settings:
        trials = results.paired(*setting, *contest)
        if trials is not None:
            blocks += np.stack([aulc(curves["accuracy"]) for curves in trials], axis=1).tolist()
    if len(contest) < 2 or not blocks:
        return None
    means = np.asarray(blocks).mean(axis=0)
    if np.isnan(means).all():
        return None
    best = int(np.nanargmax(means))
    return Leader(contest[best], float(means[best]), len(blocks))


def _begun(folder: Path) -> float | None:
    """When a living process took the campaign's lock, None where none holds it.

    The lock itself is not tried: for the moment of trying, its owner would be refused.
    """
    lock = folder / LOCK
    try:
        words, begun = lock.read_text(encoding="utf-8").split(), lock.stat().st_mtime
    except (OSError, UnicodeDecodeError):
        return None
    if len(words) != 4 or words[3] != socket.gethostname() or not words[1].isdigit() or not _lives(int(words[1])):
        return None
    note = folder / FAILED
    return None if note.is_file() and note.stat().st_mtime >= begun else begun


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _round_of(folder: Path) -> int:
    """The last round that was opened; 0 before there is one."""
    path = folder / DATABASE
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as database:
            found = database.execute("SELECT max(round) FROM rounds").fetchone()[0]
    except sqlite3.Error:
        return 0
    return int(found or 0)
