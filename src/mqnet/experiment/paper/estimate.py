"""What a grid will cost on this machine: campaigns to run, and about how long."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mqnet.experiment.cells import Cell
from mqnet.experiment.cost import run_cost
from mqnet.experiment.run import run_cell
from mqnet.experiment.stored import cell_folder
from mqnet.numerics.threads import one_thread

SLOWEST = ("similar", "mqnet", "coreset", "badge", "ccal", "ll")
"""Strategies by the time a round of theirs takes, longest first; the others are quicker."""


@dataclass(frozen=True)
class Estimate:
    """Campaigns in all and finished, the seconds the missing ones will take side by side, and how that is known.

    `more` are lines about what will be trained, where that is known.
    """

    n_cells: int
    n_finished: int
    seconds: float
    how: str
    more: tuple[str, ...] = ()


def estimate(out: Path, cells: Sequence[Cell], jobs: int) -> Estimate:
    """The cost of what is missing: each strategy at the pace of its finished campaigns in this folder, others at that
    of one timed round of the slowest of them, which is too long rather than too short."""
    seconds: dict[str, list[float]] = {}
    missing: list[Cell] = []
    for cell in cells:
        found = _seconds(out, cell)
        if found is None:
            missing.append(cell)
        else:
            seconds.setdefault(cell.strategy_label, []).append(found)
    trained = run_cost(out, missing, jobs)
    if trained is not None:  # images: a timed round would be a wait
        return Estimate(
            len(cells), len(cells) - len(missing), trained.seconds, "from timed steps", tuple(trained.lines)
        )
    unknown = [cell for cell in missing if cell.strategy_label not in seconds]
    pace, how = 0.0, "at the pace of the finished ones"
    if unknown:
        slow = min(unknown, key=lambda cell: (*SLOWEST, cell.strategy.name).index(cell.strategy.name))
        round_, rest = _timed_round(slow)
        pace = rest + round_ * slow.config.campaign.rounds
        how = f"from one timed round of {slow.strategy_label}: {round_:.1f} s"
    total = sum(_mean(seconds.get(cell.strategy_label)) or pace for cell in missing)
    return Estimate(len(cells), len(cells) - len(missing), total / max(1, min(jobs, len(missing))), how)


def _seconds(out: Path, cell: Cell) -> float | None:
    path = cell_folder(out, cell) / "rounds.json"
    if not path.is_file():
        return None
    rounds = json.loads(path.read_text())
    return sum(value for one in rounds for name, value in one.items() if name.startswith("seconds_"))


def _timed_round(cell: Cell) -> tuple[float, float]:
    """Seconds of a campaign's first round, and those of everything around it."""
    campaign = cell.config.campaign.model_copy(update={"rounds": 1})
    short = replace(cell, config=cell.config.model_copy(update={"campaign": campaign}))
    with tempfile.TemporaryDirectory() as folder, one_thread():
        begun = time.perf_counter()
        run_cell(Path(folder), short)
        wall = time.perf_counter() - begun
        inside = _seconds(Path(folder), short) or 0.0
    return inside, wall - inside


def _mean(values: Sequence[float] | None) -> float | None:
    return sum(values) / len(values) if values else None
