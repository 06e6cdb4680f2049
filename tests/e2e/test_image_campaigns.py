"""Campaigns on images by the command line: they run, and SIGKILL inside a training changes nothing of how they end."""

from __future__ import annotations

import importlib.util
import random
import time
from pathlib import Path

import numpy as np
import pytest
from looking import everything_of, rows_of

from processes import write_grid

PLUGIN = Path(__file__).parent / "pictures_plugin.py"
SCENARIO = {"dataset": "textures", "known_classes": 3, "pool_size": 80}
CAMPAIGN = {"rounds": 2, "budget": 12, "cost_ood": 1.0}
MODEL = {"name": "resnet8", "n_steps": 14, "batch_size": 8}
N_KILLS = 8
GRACE = 100  # attempts after which a run that never ends is a failure


def _run(out: str) -> tuple[object, ...]:
    return ("run", "grid.toml", "--out", out, "--jobs", 1, "--plugin", PLUGIN)


@pytest.fixture(scope="module")
def undisturbed(mqnet, tmp_path_factory):
    """The grid's folder with a finished run in `whole`, and the number of its steps towards the disk."""
    folder = tmp_path_factory.mktemp("pictures")
    strategies = [{"name": "mqnet", "purity": "energy", "informativeness": "predicted_loss"}]
    write_grid(folder, scenario=SCENARIO, campaign=CAMPAIGN, model=MODEL, grid={"strategies": strategies})
    ended = mqnet(*_run("whole"), cwd=folder, count=str(folder / "steps"))
    assert (ended.code, ended.err) == (0, "")
    return folder, int((folder / "steps").read_text())


def test_a_campaign_on_images_runs_and_leaves_no_checkpoint(undisturbed) -> None:
    folder, _ = undisturbed
    rows = rows_of(folder / "whole")
    assert len(rows) == 2
    assert all(0.0 <= float(row["accuracy"]) <= 1.0 for row in rows)
    assert all(row["purity_auroc"] != "" for row in rows)
    assert not list((folder / "whole" / "cells").glob("*/training"))
    assert not list((folder / "whole" / "cells").glob("*/progress.json"))


def test_killed_inside_a_training_and_continued(mqnet, undisturbed) -> None:
    folder, n_steps = undisturbed
    chance, n_kills, n_inside, n_runs = random.Random(1), 0, 0, 0
    while n_kills < N_KILLS:
        n_runs += 1
        out = f"killed{n_runs}"
        for _ in range(GRACE):
            ended = mqnet(*_run(out), cwd=folder, die_at=chance.randint(n_steps // 20, n_steps // 3))
            if ended.code == 0:
                break
            assert ended.code == -9, ended.err
            n_kills += 1
            n_inside += bool(list((folder / out).glob("cells/*/training/*.safetensors")))
        assert everything_of(folder / out) == everything_of(folder / "whole")
    assert n_inside >= 2  # checkpoints are most of what is written here


def test_vectors_and_images_are_told_apart_before_anything_is_asked(mqnet, tmp_path: Path) -> None:
    write_grid(tmp_path, model={"name": "resnet8", "n_steps": 2})  # digits are vectors
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", 1, cwd=tmp_path)
    assert ended.code == 2
    assert "the model 'resnet8' takes images, and the pool holds vectors [64]. Choose the model 'head'" in ended.err
    write_grid(tmp_path, scenario=SCENARIO, campaign=CAMPAIGN, model={"name": "head"})
    ended = mqnet("run", "grid.toml", "--out", "other", "--jobs", 1, "--plugin", PLUGIN, cwd=tmp_path)
    assert ended.code == 2
    assert "the model 'head' takes vectors, and the pool holds images. Choose the model 'resnet8'" in ended.err


@pytest.fixture
def some_cifar(data_folder: Path, tmp_path: Path) -> Path:
    """1,500 training and 400 test images of CIFAR-10 in the official binary layout."""
    spec = importlib.util.spec_from_file_location("unpack", data_folder / "unpack.py")
    assert spec is not None
    assert spec.loader is not None
    unpack = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(unpack)
    root = tmp_path / "cifar"
    root.mkdir()
    for which, names, n in (
        ("cifar10_train", [f"data_batch_{i}.bin" for i in range(1, 6)], 1500), ("cifar10_test", ["test_batch.bin"], 400)
    ):  # fmt: skip
        images, labels, classes = unpack.load(which, 0)
        records = np.hstack([labels[:n, None].astype(np.uint8), images[:n].transpose(0, 3, 1, 2).reshape(n, -1)])
        for name, part in zip(names, np.array_split(records, len(names)), strict=True):
            part.tofile(root / name)
    (root / "batches.meta.txt").write_text("\n".join(classes))
    return root


@pytest.mark.data
def test_cifar_killed_by_the_clock_and_continued(mqnet, some_cifar: Path, tmp_path: Path) -> None:
    scenario = {"dataset": "cifar10", "root": str(some_cifar), "known_classes": 4, "pool_size": 400}
    model = {"name": "resnet8", "n_steps": 80, "batch_size": 32}
    strategies = [{"name": "mqnet", "purity": "odin", "informativeness": "bald"}]
    write_grid(
        tmp_path, scenario=scenario, campaign={"rounds": 2, "budget": 100, "cost_ood": 1.0}, model=model,
        grid={"strategies": strategies},
    )  # fmt: skip
    began = time.perf_counter()
    assert mqnet(*_run("whole"), cwd=tmp_path).code == 0
    seconds = time.perf_counter() - began
    last = rows_of(tmp_path / "whole")[-1]
    assert float(last["accuracy"]) > 0.3  # four classes: chance is 0.25
    running = mqnet.start(*_run("killed"), cwd=tmp_path)
    while not list(tmp_path.glob("killed/cells/*/training/*.safetensors")):
        time.sleep(0.01)
        assert time.perf_counter() - began < 600
    time.sleep(random.Random(3).uniform(0.0, seconds / 3))
    running.kill()
    running.wait()
    assert mqnet(*_run("killed"), cwd=tmp_path).code == 0
    assert everything_of(tmp_path / "killed") == everything_of(tmp_path / "whole")
