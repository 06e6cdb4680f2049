"""Where a run stands, from a folder made by hand."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mqnet.cli.watching import headline, picture
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.config import parse_config
from mqnet.experiment.results import Row
from mqnet.experiment.simulate import RoundResult
from mqnet.experiment.standing import Running, Standing, leader_of, standing
from mqnet.experiment.stored import cell_folder
from mqnet.store.campaign import CampaignStore, RoundRecord

BASE = RoundResult(1, 0.5, 20.0, 15, 5, 0.75, 0.5, 0.3, 1.0, 0.5, 0.25, 0.25)


def _cells() -> list[Cell]:
    strategies = ["random", "mqnet", "oracle-purity"]
    scenario = {"known_classes": 4, "pool_size": 150}
    return grid(parse_config({"scenario": scenario, "grid": {"strategies": strategies, "seeds": [0, 1]}}))


def _rows(cell: Cell, accuracy: float, n: int = 2) -> list[Row]:
    label = cell.config.scenario.label
    return [
        Row(label, cell.strategy_label, 0.4, cell.seed, replace(BASE, round=r + 1, accuracy=accuracy), cell.digest)
        for r in range(n)
    ]


def _held(folder: Path, process: int, seconds_ago: float, now: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "loop.lock"
    lock.write_text(f"process {process} on {socket.gethostname()}")
    os.utime(lock, (now - seconds_ago, now - seconds_ago))


def test_done_running_failed_and_what_is_left(tmp_path: Path) -> None:
    cells, now = _cells(), 1_000_000.0
    done, running, failed, orphan, again, untouched = cells
    cell_folder(tmp_path, done).mkdir(parents=True)
    (cell_folder(tmp_path, done) / "rounds.json").write_text("[]")
    _held(cell_folder(tmp_path, running), os.getpid(), 1.0, now)
    store = CampaignStore.create(
        cell_folder(tmp_path, running), running.config.campaign_config(("a",), running.strategy, 0), {}
    )
    for round_ in range(3):
        store.open_round(RoundRecord(round_, 10.0), [(f"item {round_}", 0.0)])
    store.close()
    cell_folder(tmp_path, failed).mkdir(parents=True)
    (cell_folder(tmp_path, failed) / "error.txt").write_text("no")
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    _held(cell_folder(tmp_path, orphan), int(ended.stdout), 5.0, now)  # that process is no more
    # it failed before and is tried again
    folder = cell_folder(tmp_path, again)
    folder.mkdir()
    (folder / "error.txt").write_text("no")
    os.utime(folder / "error.txt", (now - 50, now - 50))
    _held(folder, os.getpid(), 3.0, now)
    found = standing(tmp_path, cells, _rows(done, 0.5), now)
    assert (found.total, found.done, found.failed, found.ended) == (6, 1, 1, 2)
    assert [(one.cell, one.round, one.seconds) for one in found.running] == [
        (running, 2, pytest.approx(1.0)), (again, 0, pytest.approx(3.0)),
    ]  # fmt: skip
    # a cell takes 2 rounds of 2 s; four are left, of which 1 s and 3 s are spent; two work
    assert found.seconds_left == pytest.approx((4 * 4 - 1 - 3) / 2)
    assert untouched not in [one.cell for one in found.running]


def test_nothing_is_said_of_what_nobody_knows(tmp_path: Path) -> None:
    found = standing(tmp_path, _cells(), [], 0.0)
    assert (found.seconds_left, found.leader, found.running) == (None, None, ())
    assert headline(found) == "0 of 6 campaigns"


def test_the_leader_is_whom_all_were_measured_with() -> None:
    cells = {(cell.strategy_label, cell.seed): cell for cell in _cells()}
    strategies = {"random": "random", "mqnet": "mqnet", "oracle-purity": "oracle-purity"}
    rows = [*_rows(cells["random", 0], 0.6), *_rows(cells["mqnet", 0], 0.7), *_rows(cells["random", 1], 0.99)]
    found = leader_of(rows, strategies)
    assert found is not None
    # seed 1 of mqnet is not there yet: random's luck in it does not count, and the oracle is no contestant
    assert (found.strategy, found.aulc, found.n_blocks) == ("mqnet", pytest.approx(0.7), 1)
    assert leader_of(rows[:2], strategies) is None


def test_the_display_shows_it_all() -> None:
    cells = _cells()
    running = tuple(Running(cell, i, 10, 1.0) for i, cell in enumerate(cells[:2]))
    leader = leader_of([*_rows(cells[0], 0.6), *_rows(cells[1], 0.7)], {"random": "random", "mqnet": "mqnet"})
    found = Standing(6, 3, 1, running, 150.0, leader)
    text = StringIO()
    Console(file=text, width=80).print(picture(found))
    head, bar, *lines = text.getvalue().splitlines()
    assert head == "4 of 6 campaigns, 1 failed, about 2.5 min left"
    assert set(bar) == {"━"}
    assert lines[0].startswith("  round  0 of 10  random · split-digits · 40% OOD · seed 0")
    assert lines[1].startswith("  round  1 of 10  mqnet")
    assert lines[2] == "best so far: mqnet (AULC 70.00 over one setting and seed)"
    assert headline(found).startswith("4 of 6 campaigns, 1 failed, 2 running, about 2.5 min left, best so far: mqnet (")
