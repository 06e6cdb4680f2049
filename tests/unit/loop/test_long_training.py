"""Checkpoints and progress in a campaign's folder: whole or not there, of one training, gone when it is over."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from mqnet.cli.progress import Phases
from mqnet.cli.watching import steps_of
from mqnet.data.images import ImagePool
from mqnet.loop import progress
from mqnet.loop.checkpoints import FOLDER, FolderCheckpoints
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.progress import FILE, STALE_SECONDS, step_in, watching
from mqnet.models.checkpoints import Saver
from mqnet.types import OOD
from pictures import pictures

STATE = {"a": torch.randn(3, 4), "step": torch.tensor(7), "empty": torch.empty(0)}


def test_a_state_comes_back_under_its_own_name_only(tmp_path: Path) -> None:
    kept = FolderCheckpoints(tmp_path / "training")
    assert kept.load("one") is None
    kept.save("one", STATE)
    found = kept.load("one")
    assert found is not None
    assert {name: tensor.tolist() for name, tensor in found.items()} == {k: v.tolist() for k, v in STATE.items()}
    assert kept.load("two") is None
    kept.save("two", STATE)
    assert kept.load("one") is None  # one training at a time
    assert [path.name for path in kept.folder.iterdir()] == ["two.safetensors"]
    kept.clear()
    assert not kept.folder.exists()
    kept.clear()


def test_a_damaged_checkpoint_is_none(tmp_path: Path) -> None:
    kept = FolderCheckpoints(tmp_path)
    kept.save("one", STATE)
    path = tmp_path / "one.safetensors"
    whole = path.read_bytes()
    for broken in (b"", whole[:-5], whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(broken)
        assert kept.load("one") is None


def test_a_kill_while_writing_leaves_the_old_state(tmp_path: Path) -> None:
    kept = FolderCheckpoints(tmp_path)
    kept.save("one", STATE)

    class Killed(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Killed

    with patch.object(Path, "replace", dies), pytest.raises(Killed):
        kept.save("one", {**STATE, "step": torch.tensor(8)})
    found = kept.load("one")
    assert found is not None
    assert int(found["step"]) == 7
    kept.save("one", {**STATE, "step": torch.tensor(9)})  # what was left half-way is swept up
    assert [path.name for path in tmp_path.iterdir()] == ["one.safetensors"]


MODEL = {"name": "resnet8", "n_steps": 6, "batch_size": 4, "device": "cpu"}
CLASSES = ["a", "b"]


def _learner(folder: Path | None, **options: object) -> ActiveLearner:
    pool = ImagePool(pictures(np.arange(24) % 3, size=8))
    how = {"budget": 6, "strategy": "confidence", "model": MODEL, "folder": folder, **options}
    return ActiveLearner(pool, CLASSES, **how)  # type: ignore[arg-type]  # pyright: ignore


def _answers(items: tuple[str, ...]) -> dict[str, object]:
    return {item: OOD if int(item) % 3 == 2 else CLASSES[int(item) % 3] for item in items}


def _ask_and_tell(learner: ActiveLearner) -> None:
    query = learner.ask()
    assert query is not None
    learner.tell(_answers(query.items))


def test_a_round_trains_once_however_often_it_is_killed_after_its_training(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def watch(what: str):
        return lambda done, total: told.append((what, done, total))

    class Killed(BaseException):
        pass

    def dies(*_: object, **__: object) -> None:
        raise Killed

    with _learner(tmp_path / "c", watch=watch) as learner, patch.object(Saver, "due", lambda _: True):
        _ask_and_tell(learner)
        with patch("mqnet.loop.rounds.make_view", dies), pytest.raises(Killed):
            learner.ask()  # trained, and killed before the pool was encoded
    assert [done for what, done, _ in told if "training" in what] == [1, 2, 3, 4, 5, 6]
    assert list((tmp_path / "c" / FOLDER).iterdir())
    told.clear()
    with _learner(tmp_path / "c", watch=watch) as learner:
        _ask_and_tell(learner)
        assert [what for what, *_ in told] == ["looking at the pool for round 1"]  # nothing was trained again
        assert not (tmp_path / "c" / FOLDER).exists()
        learner.fitted()
        assert told[-1][0] == "training on 12 answers"
        assert not (tmp_path / "c" / FOLDER).exists()


def test_a_campaign_in_memory_and_one_that_only_looks_write_nothing(tmp_path: Path) -> None:
    with _learner(None) as learner:
        _ask_and_tell(learner)
        _ask_and_tell(learner)
    np.save(tmp_path / "pool.npy", pictures(np.arange(24) % 3, size=8).numpy())
    with ActiveLearner(tmp_path / "pool.npy", CLASSES, budget=6, model=MODEL, folder=tmp_path / "c") as learner:
        _ask_and_tell(learner)
    with ActiveLearner.open(tmp_path / "c", looking=True) as looking, patch.object(Saver, "due", lambda _: True):
        before = sorted(path.name for path in (tmp_path / "c").iterdir())
        looking.fitted()
        assert sorted(path.name for path in (tmp_path / "c").iterdir()) == before


def test_a_folder_says_what_is_being_done_and_takes_it_back(tmp_path: Path) -> None:
    with (
        patch.object(progress, "QUIET_SECONDS", 0.0),
        patch.object(progress, "EVERY_SECONDS", 0.0),
        watching(tmp_path, None, "training for round 3") as watch,
    ):
        assert watch is not None
        watch(5, 20)
        found = step_in(tmp_path)
        assert found is not None
        assert (found.what, found.done, found.total) == ("training for round 3", 5, 20)
        long_ago = time.time() - STALE_SECONDS - 1
        os.utime(tmp_path / FILE, (long_ago, long_ago))
        assert step_in(tmp_path) is None  # its process is gone
    assert list(tmp_path.iterdir()) == []
    with watching(tmp_path, None, "short") as watch:
        assert watch is not None
        watch(1, 2)  # nothing is said of what is over in two seconds
        assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE).write_text("{}")
    assert step_in(tmp_path) is None
    with watching(None, None, "nobody") as watch:
        assert watch is None


def test_steps_of_a_run_are_found_by_campaign(tmp_path: Path) -> None:
    assert steps_of(tmp_path, ["one"]) == {}
    for name, done in (("one", 3), ("two", 9)):
        (tmp_path / "cells" / name).mkdir(parents=True)
        step = {"what": f"training for round {done}", "done": done, "total": 10, "seconds": 4.0}
        (tmp_path / "cells" / name / FILE).write_text(json.dumps(step))
    (tmp_path / "cells" / "three").mkdir()
    found = steps_of(tmp_path, ["one", "two", "three"])
    assert {name: (step.what, step.done, step.total) for name, step in found.items()} == {
        "one": ("training for round 3", 3, 10), "two": ("training for round 9", 9, 10),
    }  # fmt: skip


def test_phases_follow_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with patch("mqnet.cli.progress.QUIET_SECONDS", 0.0), Phases() as phases:
        phases("training for round 2")(3, 9)
        phases("looking at the pool for round 2")(4, 8)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "training for round 2: 3 of 9", "looking at the pool for round 2: 4 of 8",
    ]  # fmt: skip
