"""The `embeddings` data set: vectors in `.npy` files with label arrays, or with a table of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.pools import ArrayPool, open_npy, read_npy
from mqnet.data.tables import read_columns
from mqnet.errors import ConfigError, InputError
from mqnet.registry import dataset


@dataset("embeddings")
def embeddings(
    *,
    train: Path | None = None,
    train_labels: Path | None = None,
    test: Path | None = None,
    test_labels: Path | None = None,
    table: Path | None = None,
    label_column: str = "label",
    split_column: str = "split",
    ood: Path | None = None,
) -> Dataset:
    """Vectors of your own: `train` and `test` arrays with label arrays, or one array with a `table` of labels."""
    if train is None:
        raise ConfigError("the data set 'embeddings' needs `train`: a .npy file of vectors.")
    if table is not None:
        return _from_table(open_npy(train), table, label_column, split_column, ood)
    if train_labels is None or test is None or test_labels is None:
        raise ConfigError(
            "the data set 'embeddings' needs `train_labels`, `test` and `test_labels` beside `train`, or a `table`."
        )
    labels, held_out = _labels(train_labels), _labels(test_labels)
    classes = tuple(sorted(set(labels.tolist()) | set(held_out.tolist()), key=_natural))
    number = {name: i for i, name in enumerate(classes)}
    pools = open_npy(train), open_npy(test)
    _same_width(*pools)
    parts = [
        Labelled(pool, np.asarray([number[name] for name in names.tolist()], dtype=np.int64))
        for pool, names in zip(pools, (labels, held_out), strict=True)
    ]
    return Dataset(parts[0], parts[1], tuple(str(name) for name in classes), _junk(ood, pools[0]))


def _labels(path: Path) -> NDArray[np.generic]:
    labels = read_npy(path)
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise InputError(
            f"'{path}' holds {labels.dtype} of shape {labels.shape}: labels are one integer or text per row."
        )
    return np.asarray(labels)


def _natural(name: object) -> tuple[int, int | str]:
    return (0, name) if isinstance(name, int) else (1, str(name))


def _from_table(pool: ArrayPool, table: Path, label_column: str, split_column: str, ood: Path | None) -> Dataset:
    columns = read_columns(table, (label_column, split_column), optional=("id",))
    labels, split = columns[label_column], columns[split_column]
    if len(labels) != len(pool.ids):
        raise InputError(f"{pool.source} has {len(pool.ids)} rows but the table '{table}' has {len(labels)}.")
    names = set(split)
    if not {"train", "test"} <= names:
        raise InputError(
            f"column '{split_column}' of '{table}' must say 'train' or 'test'; it says {sorted(names)[:5]}."
        )
    named = ArrayPool(pool.vectors, columns["id"], source=pool.source) if "id" in columns else pool
    classes = tuple(sorted(set(labels)))
    number = {name: i for i, name in enumerate(classes)}
    numbers = np.asarray([number[name] for name in labels], dtype=np.int64)
    parts: list[Labelled] = []
    for which in ("train", "test"):
        rows = np.flatnonzero(np.asarray([value == which for value in split]))
        parts.append(Labelled(named.subset(named.ids.take(rows)), numbers[rows]))
    return Dataset(parts[0], parts[1], classes, _junk(ood, pool))


def _junk(path: Path | None, like: ArrayPool) -> ArrayPool | None:
    if path is None:
        return None
    junk = open_npy(path)
    _same_width(like, junk)
    return junk


def _same_width(first: ArrayPool, second: ArrayPool) -> None:
    if first.dim != second.dim:
        raise InputError(f"{first.source} has vectors of {first.dim} numbers, {second.source} of {second.dim}.")
