"""Tasks over processes: failures, deaths, interruption."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from mqnet.scale.local import run_tasks

Task = tuple[str, str]


def work(task: Task) -> str:
    """Do what the task says; the second part is a folder for notes."""
    what, folder = task
    if what == "fails":
        raise ValueError("as told")
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "dies once" and not (note := Path(folder) / "died").exists():
        note.touch()
        os._exit(1)
    if what.startswith("slow"):
        (Path(folder) / f"{os.getpid()}.pid").touch()
        time.sleep(float(what.split()[1]))
    return what


def _outcomes(tasks: list[str], jobs: int, folder: Path) -> dict[str, object]:
    out = {what: outcome for (what, _), outcome in run_tasks(work, [(what, str(folder)) for what in tasks], jobs=jobs)}
    assert len(out) == len(tasks)
    return out


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_task_does_not_stop_the_others(jobs: int, tmp_path: Path) -> None:
    found = _outcomes(["a", "fails", "b"], jobs, tmp_path)
    assert (found["a"], found["b"]) == ("a", "b")
    assert isinstance(found["fails"], ValueError)
    assert str(found["fails"]) == "as told"


def test_a_dying_worker_fails_its_own_task_only(tmp_path: Path) -> None:
    # 'slow 1' runs beside the first death: both are tried again, each alone
    found = _outcomes(["killed", "slow 1", "dies once"], 2, tmp_path)
    assert isinstance(found["killed"], ChildProcessError)
    assert (found["slow 1"], found["dies once"]) == ("slow 1", "dies once")


def test_an_interrupted_consumer_ends_the_workers(tmp_path: Path) -> None:
    tasks = [("a", str(tmp_path)), ("slow 600", str(tmp_path)), ("slow 601", str(tmp_path))]
    running = run_tasks(work, tasks, jobs=2)
    assert next(running) == (tasks[0], "a")
    while not (begun := list(tmp_path.glob("*.pid"))):
        time.sleep(0.01)
    running.close()
    for pid in (int(path.stem) for path in begun):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_nothing_to_do_is_no_error() -> None:
    assert list(run_tasks(work, [], jobs=2)) == []


def count_threads(_: object) -> tuple[int, str]:
    """How many threads torch and the other libraries take here."""
    import torch

    return torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_has_one_thread(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert [found for _, found in run_tasks(count_threads, [1, 2], jobs=jobs)] == [(1, "1"), (1, "1")]
    assert os.environ["OMP_NUM_THREADS"] == "3"
