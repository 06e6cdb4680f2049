"""Real features: CIFAR-10, banking77 and places, in grids of seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from looking import campaign_of, rows_of
from sklearn.metrics import roc_auc_score

from mqnet.experiment.cells import open_scenario
from mqnet.experiment.config import load_config
from processes import write_grid

pytestmark = pytest.mark.data

CAMPAIGN = {"rounds": 3, "budget": 60, "cost_ood": 1.0}
MODEL = {"n_steps": None}  # the default


def _cifar(folder: Path) -> dict[str, object]:
    names = {"train": "train", "train_labels": "train_labels", "test": "test", "test_labels": "test_labels"}
    return {
        "dataset": "embeddings",
        **{key: str(folder / "embeddings" / f"cifar10_{name}.npy") for key, name in names.items()},
    }


def _run(mqnet, folder: Path, strategies: list[str], **scenario: object) -> list[dict[str, str]]:
    write_grid(folder, scenario=scenario, campaign=CAMPAIGN, model=MODEL, grid={"strategies": strategies})
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    rows = rows_of(folder / "out")
    assert len(rows) == 3 * len(strategies)
    return rows


def _last(rows: list[dict[str, str]], strategy: str) -> dict[str, str]:
    return next(row for row in reversed(rows) if row["strategy"] == strategy)


def test_split_over_cifar(mqnet, data_folder: Path, tmp_path: Path) -> None:
    rows = _run(mqnet, tmp_path, ["random", "sum", "oracle-purity"], **_cifar(data_folder), pool_size=5000)
    assert float(_last(rows, "random")["accuracy"]) > 0.7  # four classes: chance is 0.25
    assert 0.4 < np.mean([float(r["query_known_share"]) for r in rows if r["strategy"] == "random"]) < 0.8
    assert {r["query_known_share"] for r in rows if r["strategy"] == "oracle-purity"} == {"1.0"}
    assert float(_last(rows, "sum")["purity_auroc"]) > 0.6


def test_cross_over_cifar_with_places_as_junk(mqnet, data_folder: Path, tmp_path: Path) -> None:
    scenario = _cifar(data_folder) | {"kind": "cross", "known_classes": None}
    junk = str(data_folder / "embeddings" / "places_ood.npy")
    rows = _run(mqnet, tmp_path, ["random", "sum"], **scenario, ood=junk, pool_size=5000)
    assert float(_last(rows, "random")["accuracy"]) > 0.5  # ten classes
    assert 0.4 < np.mean([float(r["query_known_share"]) for r in rows if r["strategy"] == "random"]) < 0.8
    row = _last(rows, "sum")
    # no threshold here: junk that lies between the classes is nearer to few labelled items than known items are
    assert float(row["purity_auroc"]) == pytest.approx(_auroc_by_hand(tmp_path, row), abs=1e-3)


def _auroc_by_hand(folder: Path, row: dict[str, str]) -> float:
    """AUROC of minus the cosine distance to the fifth nearest known item bought before the row's query."""
    scenario = open_scenario(load_config(folder / "grid.toml").scenario, float(row["ood_share"]), int(row["seed"]))
    vectors = scenario.pool.load(scenario.pool.ids).numpy().astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    lines = campaign_of(folder / "out" / "cells" / row["cell"])["answers"]
    bought = [line for line in lines if line[0] < int(row["round"])]
    known = scenario.pool.ids.find([line[2] for line in bought if line[3] == "known"])
    left = np.setdiff1d(np.arange(len(vectors)), scenario.pool.ids.find([line[2] for line in bought]))
    fifth = np.sort(vectors[left] @ vectors[known].T, axis=1)[:, -5]
    return float(roc_auc_score(scenario.labels[left] >= 0, fifth))


def test_split_over_a_table(mqnet, data_folder: Path, tmp_path: Path) -> None:
    rows = _run(
        mqnet, tmp_path, ["random", "sum"], dataset="embeddings", name="banking77",
        train=str(data_folder / "embeddings" / "banking77.npy"), table=str(data_folder / "text" / "banking77.csv"),
        known_classes=None, known_class_share=0.1, pool_size=None,
    )  # fmt: skip
    assert {row["scenario"] for row in rows} == {"banking77"}
    assert float(_last(rows, "random")["accuracy"]) > 0.7  # eight intents
