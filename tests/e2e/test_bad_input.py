"""Bad input: exit code 2, one paragraph that names what is wrong, and nothing changed on disk."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from looking import everything_of, files_of

from mqnet.store.lock import LoopLock
from processes import Ended, write_grid

N_TRAIN, N_TEST = 60, 20
FILES = {name: f"{name}.npy" for name in ("train", "train_labels", "test", "test_labels")}
EMBEDDINGS = {"dataset": "embeddings", "known_classes": 2, "ood_share": [0.3], "pool_size": 30, **FILES}


def _save_vectors(folder: Path) -> None:
    random = np.random.default_rng(0)
    for name, n in (("train", N_TRAIN), ("test", N_TEST)):
        np.save(folder / f"{name}.npy", random.normal(size=(n, 4)).astype(np.float32))
        np.save(folder / f"{name}_labels.npy", np.arange(n) % 3)


def _change(folder: Path, name: str, row: int, value: float) -> None:
    array = np.load(folder / name)
    array[row] = value
    np.save(folder / name, array)


def _is_refused(ended: Ended, *named: str) -> None:
    assert ended.code == 2, ended
    assert ended.err.startswith("error: ")
    assert "Traceback" not in ended.err
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 600
    for text in named:
        assert text in ended.err


Case = tuple[Mapping[str, Mapping[str, object]], tuple[str, ...]]
CASES: dict[str, Case] = {
    "missing file": ({"scenario": {"train": "nowhere.npy"}}, ("nowhere.npy' does not exist",)),
    "more known classes than classes": ({"scenario": {"known_classes": 4}}, ("known_classes = 4", "3")),
    "share the data cannot provide": ({"scenario": {"ood_share": [0.9], "pool_size": None}}, ("ood_share 0.9", "20")),
    "share of one": ({"scenario": {"ood_share": [1.0]}}, ("ood_share", "less than 1")),
    "budget below the dearest label": ({"campaign": {"budget": 2}}, ("budget is 2", "2.5")),
    "total budget below the dearest label": ({"campaign": {"total_budget": 1}}, ("total_budget is 1", "2.5")),
    "unknown strategy": ({"grid": {"strategies": ["randon"]}}, ("'randon'", "Did you mean 'random'", "confidence")),
    "unknown strategy option": (
        {"grid": {"strategies": [{"name": "sum", "puriti": "knn"}]}},
        ("no option 'puriti'", "Did you mean 'purity'"),
    ),
    "unknown score": (
        {"grid": {"strategies": [{"name": "sum", "purity": "knm"}]}},
        ("no purity is called 'knm'", "Did you mean 'knn'"),
    ),
    "unknown model": ({"model": {"name": "haed"}}, ("no model is called 'haed'", "Did you mean 'head'")),
    "unknown model option": ({"model": {"hiden": 3}}, ("no option 'hiden'", "Did you mean 'hidden'")),
    "unknown data set": ({"scenario": {"dataset": "embedings"}}, ("'embedings'", "Did you mean 'embeddings'")),
    "typo in a key": ({"campaign": {"bugdet": 3}}, ("campaign.bugdet", "Did you mean 'budget'")),
    "typo in a table": ({"gird": {"seeds": [0]}}, ("'gird'", "Did you mean 'grid'")),
    "wrong type": ({"campaign": {"rounds": "many"}}, ("campaign.rounds", "'many'")),
    "the same seed twice": ({"grid": {"seeds": [1, 1]}}, ("grid.seeds", "twice")),
    "two strategies of one name": ({"grid": {"strategies": ["sum", "sum"]}}, ("share a name", "label")),
    "a column the model lacks": (
        {
            "model": {"name": "sklearn", "n_steps": None},
            "grid": {"strategies": [{"name": "sum", "purity": "mahalanobis"}]},
        },
        ("needs features", "sklearn"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "named"), CASES.values(), ids=CASES.keys())
def test_a_wrong_configuration(mqnet, tmp_path: Path, changes, named: tuple[str, ...]) -> None:
    _save_vectors(tmp_path)
    write_grid(tmp_path, **{**changes, "scenario": {**EMBEDDINGS, **changes.get("scenario", {})}})
    before = files_of(tmp_path)
    _is_refused(mqnet("run", "grid.toml", "--out", "out", cwd=tmp_path), *named)
    assert files_of(tmp_path) == before
    assert not (tmp_path / "out").exists()


def _wrong_dtype(folder: Path) -> None:
    np.save(folder / "train.npy", np.load(folder / "train.npy").astype(np.int32))


def _objects(folder: Path) -> None:
    np.save(folder / "train.npy", np.asarray([{}] * N_TRAIN), allow_pickle=True)


def _not_npy(folder: Path) -> None:
    (folder / "train.npy").write_text("no array")


def _fewer_labels(folder: Path) -> None:
    np.save(folder / "train_labels.npy", np.arange(N_TRAIN - 1) % 3)


def _other_width(folder: Path) -> None:
    np.save(folder / "test.npy", np.zeros((N_TEST, 5), dtype=np.float32))


FILE_CASES = {
    "wrong dtype": (_wrong_dtype, ("train.npy", "int32", "float16 or float32")),
    "pickled objects": (_objects, ("train.npy", "not a plain .npy array")),
    "not an array": (_not_npy, ("train.npy", "not a plain .npy array")),
    "NaN": (lambda folder: (_change(folder, "train.npy", 7, np.nan), _change(folder, "train.npy", 9, np.nan)),
            ("row 7", "train.npy", "nan")),
    "infinite": (lambda folder: _change(folder, "test.npy", 3, -np.inf), ("row 3", "test.npy", "-inf")),
    "fewer labels than rows": (_fewer_labels, ("train.npy", f"{N_TRAIN} rows", f"{N_TRAIN - 1} labels")),
    "test vectors of another width": (_other_width, ("of 4 numbers", "of 5")),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "named"), FILE_CASES.values(), ids=FILE_CASES.keys())
def test_a_wrong_file(mqnet, tmp_path: Path, spoil, named: tuple[str, ...]) -> None:
    _save_vectors(tmp_path)
    spoil(tmp_path)
    write_grid(tmp_path, scenario=EMBEDDINGS)
    before = files_of(tmp_path)
    _is_refused(mqnet("run", "grid.toml", "--out", "out", cwd=tmp_path), *named)
    assert files_of(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_no_configuration_and_no_toml(mqnet, tmp_path: Path) -> None:
    _is_refused(mqnet("run", "none.toml", "--out", "out", cwd=tmp_path), "'none.toml' does not exist")
    (tmp_path / "bad.toml").write_text("[grid\n")
    _is_refused(mqnet("run", "bad.toml", "--out", "out", cwd=tmp_path), "bad.toml' is not valid TOML")
    write_grid(tmp_path)
    (tmp_path / "taken").write_text("a file")
    _is_refused(mqnet("run", "grid.toml", "--out", "taken", cwd=tmp_path), "taken")
    _is_refused(mqnet("run", "grid.toml", "--out", "out", "--plugin", "no.py", cwd=tmp_path), "no.py' does not exist")
    _is_refused(mqnet("report", "nowhere", cwd=tmp_path), "'nowhere' holds no experiment")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "grid.toml", "taken"]


def test_options_nobody_knows(mqnet, tmp_path: Path) -> None:
    for arguments in (["run", "grid.toml"], ["run", "grid.toml", "--out", "o", "--job", "2"], ["rum"]):
        ended = mqnet(*arguments, cwd=tmp_path)
        assert ended.code == 2
        assert "Traceback" not in ended.err
    assert not list(tmp_path.iterdir())


def _begun(mqnet, folder: Path, **how: object) -> Path:
    """A run killed in the middle of its only campaign, and that campaign's folder."""
    write_grid(folder, grid={"strategies": ["random"]})
    ended = mqnet("run", "grid.toml", "--out", "out", cwd=folder, die_at=100, **how)
    assert ended.code == -9
    (cell,) = (folder / "out" / "cells").iterdir()
    assert (cell / "campaign.db").is_file()
    return cell


def _rows_in(database: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [row for name in tables for row in connection.execute(f"SELECT * FROM {name}")]


def test_a_store_of_a_newer_schema(mqnet, tmp_path: Path) -> None:
    cell = _begun(mqnet, tmp_path)
    with closing(sqlite3.connect(cell / "campaign.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = _rows_in(cell / "campaign.db")
    _is_refused(mqnet("status", cell, cwd=tmp_path), "newer mqnet", "'9999'", "Nothing was changed")
    _is_refused(mqnet("run", "grid.toml", "--out", "out", cwd=tmp_path), "newer mqnet", "'9999'")
    assert _rows_in(cell / "campaign.db") == before


def test_a_second_loop(mqnet, tmp_path: Path) -> None:
    write_grid(tmp_path, grid={"strategies": ["random", "sum", "product"], "seeds": [0, 1, 2]})
    first = mqnet.start("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    try:
        began = time.perf_counter()
        while not list(tmp_path.glob("out/cells/*/campaign.db")):
            assert time.perf_counter() - began < 60
            time.sleep(0.01)
        started = mqnet.start("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
        _is_refused(started.wait(), f"process {first.pid} ")
    finally:
        ended = first.wait()
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("size", [600, 3_000, 30_000])
def test_a_full_disk(mqnet, tmp_path: Path, size: int) -> None:
    # no file can grow beyond `size` bytes: the lock, an array or the database fails, as on a full disk
    write_grid(tmp_path)
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path, file_size=size)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert not list((tmp_path / "out").rglob("rounds.json"))
    # with room again the same command ends as if nothing had happened
    again = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert mqnet("run", "grid.toml", "--out", "fresh", "--jobs", "1", cwd=tmp_path).code == 0
    assert everything_of(tmp_path / "out") == everything_of(tmp_path / "fresh")
    assert not list((tmp_path / "out").rglob("error.txt"))


def test_a_campaign_another_loop_works_on(mqnet, tmp_path: Path) -> None:
    cell = _begun(mqnet, tmp_path)
    lock = LoopLock(cell)
    try:
        before = _rows_in(cell / "campaign.db")
        # it waits some seconds: the lock may be that of a killed run's worker which has not noticed yet
        ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
        _is_refused(ended, "is being worked on by process ")
        assert _rows_in(cell / "campaign.db") == before
    finally:
        lock.release()
    assert mqnet("run", "grid.toml", "--out", "out", "--jobs", "1", cwd=tmp_path).code == 0
