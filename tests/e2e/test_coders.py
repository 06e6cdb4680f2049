"""Coders in `mqnet run`: trained once for a grid, killed and continued to the same bits, told in advance."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from looking import everything_of

from processes import toml

PLUGIN = Path(__file__).parent / "pictures_plugin.py"
STRATEGIES = ["random", "ccal", {"name": "mqnet", "purity": "csi", "informativeness": "predicted_loss"}]


def write_cifar(folder: Path) -> None:
    """Made-up images in CIFAR-10's layout: ten colours, 12 images of each in a file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        labels = np.arange(120, dtype=np.uint8) % 10
        level = np.stack([20 * labels, 200 - 20 * labels, 100 + 0 * labels], axis=1)[:, :, None]
        pixels = (level + rng.integers(0, 50, (120, 3, 1024))).astype(np.uint8)
        (folder / name).write_bytes(np.concatenate([labels[:, None], pixels.reshape(120, -1)], axis=1).tobytes())
    (folder / "batches.meta.txt").write_text("\n".join(f"colour{i}" for i in range(10)))


def grid(**changes) -> str:
    tables = {
        "scenario": {"dataset": "textures", "known_classes": 3, "ood_share": [0.4], "pool_size": 80},
        "campaign": {"rounds": 2, "budget": 8},
        "model": {"name": "resnet8", "n_steps": 3, "batch_size": 16},
        "coder": {"epochs": 2, "batch_size": 16, "precision": "float32"},
        "grid": {"strategies": STRATEGIES, "seeds": [0]},
    }
    return toml({table: {**values, **changes.get(table, {})} for table, values in tables.items()})


@pytest.fixture(scope="module")
def undisturbed(mqnet, tmp_path_factory):
    """The folder with a finished run in `whole`, its steps towards the disk, what it printed and what it left."""
    folder = tmp_path_factory.mktemp("coders")
    (folder / "grid.toml").write_text(grid())
    ended = mqnet(*run("whole"), cwd=folder, count=str(folder / "steps"))
    assert (ended.code, ended.err) == (0, "")
    return folder, int((folder / "steps").read_text()), ended.out, what_matters(folder / "whole")


def run(out: str, *more: object, jobs: int = 1) -> tuple[object, ...]:
    return ("run", "grid.toml", "--out", out, "--jobs", jobs, "--plugin", PLUGIN, *more)


def coders_of(out: Path) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in sorted((out / "shared").glob("*/coder.json"))}


def what_matters(out: Path):
    coders = coders_of(out)
    for coder in coders.values():
        del coder["seconds"]
    arrays = {path.name: path.read_bytes() for path in sorted((out / "shared" / "arrays").rglob("*.safetensors"))}
    return everything_of(out), coders, arrays


def test_a_grid_trains_each_coder_once_and_says_so_before(undisturbed) -> None:
    folder, _, printed, _ = undisturbed
    coders = coders_of(folder / "whole")
    assert sorted(coder["kind"] for coder in coders.values()) == ["csi", "simclr"]
    assert not list((folder / "whole" / "shared").rglob("training"))
    assert not list((folder / "whole" / "cells").rglob("*coder*"))
    assert "3 campaigns train 6 models 'resnet8': 3 steps of 16 images each" in printed
    assert "1 csi coder: 10 steps of 128 views each" in printed
    assert "1 simclr coder: 10 steps of 32 views each" in printed


def test_a_longer_grid_repeats_no_cell_and_trains_no_coder_twice(mqnet, undisturbed) -> None:
    folder, *_ = undisturbed
    before = {path: path.stat().st_mtime_ns for path in (folder / "whole").rglob("rounds.json")}
    trained = {path: path.stat().st_mtime_ns for path in (folder / "whole" / "shared").rglob("*.json")}
    (folder / "longer.toml").write_text(grid(grid={"strategies": [*STRATEGIES, "margin"]}))
    ended = mqnet("run", "longer.toml", "--out", "whole", "--jobs", 1, "--plugin", PLUGIN, cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    assert "1 campaign train 2 models" in ended.out
    assert "coder" not in ended.out
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in trained} == trained


def test_another_coder_repeats_only_the_cells_that_look_through_one(mqnet, undisturbed) -> None:
    folder, *_ = undisturbed
    (folder / "other.toml").write_text(grid(coder={"epochs": 1}))
    ended = mqnet("run", "other.toml", "--out", "whole", "--jobs", 1, "--plugin", PLUGIN, "--json", cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    cost = json.loads(ended.out.splitlines()[0])["cost"]
    assert (cost["n_campaigns"], [coder["n"] for coder in cost["coders"]]) == (2, [1, 1])


def test_killed_at_any_step_towards_the_disk(mqnet, undisturbed) -> None:
    folder, n_steps, _, whole = undisturbed
    chance, n_kills = random.Random(3), 0
    while True:
        ended = mqnet(*run("killed"), cwd=folder, die_at=chance.randint(1, max(2, n_steps // 3)))
        if ended.code == 0:
            break
        assert ended.code == -9, ended.err
        n_kills += 1
        assert n_kills < 100
    assert n_kills >= 2
    assert what_matters(folder / "killed") == whole


def test_processes_side_by_side_end_like_one(mqnet, undisturbed) -> None:
    folder, *_, whole = undisturbed
    ended = mqnet(*run("parallel", jobs=2), cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    assert what_matters(folder / "parallel") == whole


def test_data_may_lie_elsewhere(mqnet, tmp_path) -> None:
    write_cifar(tmp_path / "here" / "cifar")
    cifar = {"dataset": "cifar10", "root": "cifar", "known_classes": 4, "pool_size": 64}
    (tmp_path / "grid.toml").write_text(grid(scenario=cifar, campaign={"rounds": 1}, grid={"strategies": ["random"]}))
    ended = mqnet(*run("out"), cwd=tmp_path)
    assert ended.code == 2
    assert "cifar10' is not at" in ended.err
    ended = mqnet(*run("out", "--data", "here"), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")


def test_a_wrong_coder_option_is_named(mqnet, undisturbed) -> None:
    folder, *_ = undisturbed
    (folder / "wrong.toml").write_text(grid(coder={"epoch": 3}))
    ended = mqnet("run", "wrong.toml", "--out", "wrong", "--plugin", PLUGIN, cwd=folder)
    assert ended.code == 2
    assert "unknown key 'coder.epoch'. Did you mean 'epochs'?" in ended.err
