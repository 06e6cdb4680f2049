"""Law 1, the hard way: SIGKILL at random moments, started again, ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from looking import everything_of

from mqnet.registry import STRATEGY
from processes import PLUGIN, Running, write_grid

N_KILLS_AT_STEPS, N_KILLS_BY_CLOCK = 14, 8
GRACE = 400  # attempts after which a run that never ends is a failure


@pytest.fixture(scope="module")
def undisturbed(mqnet, tmp_path_factory):
    """The grid's folder with a finished run in `whole`, the number of its disk steps and its seconds."""
    folder = tmp_path_factory.mktemp("kills")
    learning = ["mqnet"] if "mqnet" in STRATEGY.names() else []
    write_grid(folder, grid={"strategies": ["random", "product", "leaning", *learning]})
    began = time.perf_counter()
    ended = mqnet(*_run("whole"), cwd=folder, count=str(folder / "steps"))
    assert (ended.code, ended.err) == (0, "")
    return folder, int((folder / "steps").read_text()), time.perf_counter() - began


def _run(out: str, jobs: int = 1) -> tuple[object, ...]:
    return ("run", "grid.toml", "--out", out, "--jobs", jobs, "--plugin", PLUGIN)


def _ends_like_the_undisturbed(folder: Path, out: str) -> None:
    assert everything_of(folder / out) == everything_of(folder / "whole")


def _begun(mqnet, folder: Path, out: str, jobs: int) -> Running:
    """A run that has begun a campaign: a fixed delay would fit one machine only."""
    running, began = mqnet.start(*_run(out, jobs), cwd=folder), time.perf_counter()
    while not list(folder.glob(f"{out}/cells/*/campaign.db")):
        time.sleep(0.02)
        if time.perf_counter() - began > 120:
            running.kill()
            pytest.fail(f"no campaign has begun: {running.wait()}")
    return running


def test_killed_at_any_step_towards_the_disk(mqnet, undisturbed) -> None:
    folder, n_steps, _ = undisturbed
    chance, n_kills, n_runs = random.Random(1), 0, 0
    while n_kills < N_KILLS_AT_STEPS:
        n_runs += 1
        for _ in range(GRACE):
            at = chance.randint(1, max(2, n_steps // 6))
            ended = mqnet(*_run(f"steps{n_runs}"), cwd=folder, die_at=at)
            if ended.code == 0:
                break
            assert ended.code == -9, ended.err
            n_kills += 1
        _ends_like_the_undisturbed(folder, f"steps{n_runs}")


def test_killed_by_the_clock(mqnet, undisturbed) -> None:
    folder, _, seconds = undisturbed
    chance, n_kills, n_runs = random.Random(2), 0, 0
    while n_kills < N_KILLS_BY_CLOCK:
        n_runs += 1
        for _ in range(GRACE):
            running = mqnet.start(*_run(f"clock{n_runs}"), cwd=folder)
            time.sleep(chance.uniform(0.0, seconds / 5))
            running.kill()  # one that has ended already is a zombie until waited for: the kill does nothing
            ended = running.wait()
            if ended.code == 0:
                break
            assert ended.code == -9, ended.err
            n_kills += 1
        _ends_like_the_undisturbed(folder, f"clock{n_runs}")


@pytest.mark.parametrize("group", [True, False], ids=["with", "without"])
def test_killed_with_and_without_its_workers(mqnet, undisturbed, group: bool) -> None:
    folder, *_ = undisturbed
    out = f"workers-{group}"
    running = _begun(mqnet, folder, out, jobs=2)
    running.kill(group=group)
    assert running.wait().code == -9
    # orphans may still hold their campaigns: the next run waits for them to notice that their parent is gone
    ended = mqnet(*_run(out), cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    _ends_like_the_undisturbed(folder, out)


def test_stopped_with_control_c(mqnet, undisturbed) -> None:
    folder, *_ = undisturbed
    for attempt in range(5):  # on a busy machine a run may end before the signal arrives: then another one is stopped
        out = f"stopped{attempt}"
        running = _begun(mqnet, folder, out, jobs=1)
        os.kill(running.pid, signal.SIGINT)
        ended = running.wait()
        if ended.code != 0:
            break
    assert (ended.code, ended.err) == (130, "stopped; the same command continues where it stopped\n")
    assert mqnet(*_run(out), cwd=folder).code == 0
    _ends_like_the_undisturbed(folder, out)
