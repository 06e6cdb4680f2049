"""Running a grid: cells over processes, interruptible, continued without repeating what is finished."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mqnet.errors import BusyError, InputError, MqnetError
from mqnet.experiment.campaigns import cell_learner, cell_scenario, truth_of
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.coders import CoderTask, coder_tasks, make_coder
from mqnet.experiment.config import ExperimentConfig
from mqnet.experiment.memory import forget_peak
from mqnet.experiment.results import Row, write_rows
from mqnet.experiment.simulate import RoundResult, run_campaign
from mqnet.experiment.stored import CONFIG, RESULTS, cell_folder
from mqnet.loop.learner import ActiveLearner
from mqnet.oracles.simulated import NoisyOracle
from mqnet.registry import load_plugin
from mqnet.rng import Key
from mqnet.scale.local import run_tasks
from mqnet.store.blobs import disk_error, write_durably
from mqnet.store.lock import LoopLock


@dataclass(frozen=True)
class Progress:
    """A cell has ended: how many have, how many there are, and what went wrong if something did."""

    cell: Cell
    done: int
    total: int
    seconds: float
    error: BaseException | None = None
    accuracy: float = float("nan")


def run_experiment(
    config: ExperimentConfig, out: Path, *, jobs: int | None = None, cells: Sequence[Cell] | None = None
) -> Iterator[Progress]:
    """Run what is missing of a grid and yield each cell as it ends; `results.csv` is kept up to date on the way.

    Each cell is a campaign in `OUT/cells/<hash>`; a finished one holds its `rounds.json`. A failing cell leaves
    `error.txt` there and the others go on. `cells` is the configuration's grid, where it has been made already.
    """
    cells = grid(config) if cells is None else cells
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(out, error) from error
    lock = LoopLock(out)
    try:
        write_durably(out / CONFIG, config.model_dump_json(indent=2).encode())
        missing = unfinished(out, cells)
        done, started = len(cells) - len(missing), time.perf_counter()
        write_rows(out / RESULTS, collect(out, cells))
        written = time.perf_counter()
        # cells that need no coder are run while coders are trained
        tasks = [(out, cell) for cell in sorted(missing, key=lambda cell: bool(cell.coded))]
        for task, outcome in run_tasks(_run_in, [*coder_tasks(out, missing), *tasks], jobs=jobs or n_cores()):
            if isinstance(task, CoderTask):
                continue  # what failed it will fail the cells that need it, and is told with them
            _, cell = task
            done += 1
            failed = outcome if isinstance(outcome, BaseException) else None
            if failed is not None:
                _note_failure(out, cell, failed)
            if time.perf_counter() - written > 2.0 or done == len(cells):
                write_rows(out / RESULTS, collect(out, cells))
                written = time.perf_counter()
            accuracy = float("nan") if isinstance(outcome, BaseException) else outcome
            yield Progress(cell, done, len(cells), time.perf_counter() - started, failed, accuracy)
        write_rows(out / RESULTS, collect(out, cells))
    finally:
        lock.release()


def unfinished(out: Path, cells: Sequence[Cell]) -> list[Cell]:
    """The cells that a run into this folder would still run."""
    return [cell for cell in cells if not _finished(out, cell)]


def n_cores() -> int:
    """How many processes this machine runs side by side."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def collect(out: Path, cells: Sequence[Cell]) -> list[Row]:
    """The rows of all finished cells, in the grid's order."""
    rows: list[Row] = []
    for cell in cells:
        if _finished(out, cell):
            stored = json.loads((cell_folder(out, cell) / "rounds.json").read_text())
            scenario = cell.config.scenario.label
            rows += [
                Row(
                    scenario,
                    cell.strategy_label,
                    cell.ood_share,
                    cell.seed,
                    RoundResult(**_with_nan(result)),
                    cell.digest,
                    cell.config.campaign.cost_ood,
                )
                for result in stored
            ]
    return rows


def run_cell(out: Path, cell: Cell) -> float:
    """Run or continue one cell's campaign, store its rounds, and return the last accuracy."""
    for plugin in cell.config.plugins:
        load_plugin(plugin)
    folder = cell_folder(out, cell)
    truth, c = truth_of(cell_scenario(cell)), cell.config.campaign
    oracle = NoisyOracle(truth, c.confuses_known, c.misses_ood, Key(cell.seed).child("annotator"))
    forget_peak()  # what an earlier cell of this process took is not this one's
    with _patiently(lambda: cell_learner(out, cell)) as learner:
        results = run_campaign(learner, oracle, truth)
    stored = [{k: None if v != v else v for k, v in asdict(result).items()} for result in results]
    write_durably(folder / "rounds.json", json.dumps(stored, indent=1).encode())
    (folder / "error.txt").unlink(missing_ok=True)
    return results[-1].accuracy if results else float("nan")


def _patiently(open_learner: Callable[[], ActiveLearner]) -> ActiveLearner:
    # a killed run's orphan may hold the campaign for a moment, until it notices that its parent is gone
    for _ in range(50):
        try:
            return open_learner()
        except BusyError:
            time.sleep(0.1)
    return open_learner()


def _run_in(task: CoderTask | tuple[Path, Cell]) -> float:
    if isinstance(task, CoderTask):
        make_coder(task)
        return float("nan")
    return run_cell(*task)


def _finished(out: Path, cell: Cell) -> bool:
    return (cell_folder(out, cell) / "rounds.json").is_file()


def _with_nan(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: float("nan") if value is None else value for name, value in stored.items()}


def _note_failure(out: Path, cell: Cell, error: BaseException) -> None:
    text = str(error) if isinstance(error, InputError) else "".join(traceback.format_exception(error))
    choice = json.dumps({"name": cell.strategy.name, **cell.strategy.options}, default=str)
    config = cell.config.model_dump_json(indent=1, exclude={"grid", "scenarios", "ood_costs"}, exclude_none=True)
    made_of = f"strategy: {choice}\nOOD share: {cell.ood_share}\nseed: {cell.seed}\n{config}"
    told = f"{cell.title}\n\n{text.rstrip()}\n\n{made_of}\n"
    try:
        write_durably(cell_folder(out, cell) / "error.txt", told.encode())
    except MqnetError:
        return  # the disk that failed the cell fails its note too; the caller still reports the error
