"""The `embeddings` data set: vectors with label arrays or with a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from mqnet.data.embeddings import embeddings
from mqnet.data.labelled import Labelled
from mqnet.data.pools import ArrayPool
from mqnet.data.tables import read_columns
from mqnet.errors import ConfigError, InputError, PoolError

ROWS = {
    "id": ["q1", "q2", "q3", "q4", "q5"],
    "label": ["lost card", "refund", "lost card", "007", "refund"],
    "split": ["train", "train", "test", "train", "test"],
}


def _arrays(folder: Path, labels: object, held_out: object) -> dict[str, Path]:
    paths = {name: folder / f"{name}.npy" for name in ("train", "train_labels", "test", "test_labels")}
    labels, held_out = np.asarray(labels), np.asarray(held_out)
    np.save(paths["train"], np.arange(2 * len(labels), dtype=np.float16).reshape(-1, 2))
    np.save(paths["test"], np.ones((len(held_out), 2), dtype=np.float32))
    np.save(paths["train_labels"], labels)
    np.save(paths["test_labels"], held_out)
    return paths


def _table(folder: Path, kind: str, n: int = 5, **columns: list[str]) -> dict[str, Path]:
    np.save(folder / "all.npy", np.arange(2 * n, dtype=np.float32).reshape(n, 2))
    path = folder / f"rows.{kind}"
    table = pa.table({**ROWS, **columns})
    (pyarrow.csv.write_csv if kind == "csv" else pyarrow.parquet.write_table)(table, path)
    return {"train": folder / "all.npy", "table": path}


def test_numbers_as_labels_are_named_in_their_order(tmp_path: Path) -> None:
    data = embeddings(**_arrays(tmp_path, [10, 2, 2, 9], [9, 10]))
    assert data.classes == ("2", "9", "10")
    assert data.train.labels.tolist() == [2, 0, 0, 1]
    assert data.test.labels.tolist() == [1, 2]


def test_texts_as_labels(tmp_path: Path) -> None:
    data = embeddings(**_arrays(tmp_path, ["dog", "cat", "dog"], ["cat", "emu"]))
    assert data.classes == ("cat", "dog", "emu")
    assert data.train.labels.tolist() == [1, 0, 1]
    assert data.test.labels.tolist() == [0, 2]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_names_splits_and_labels_the_rows(tmp_path: Path, kind: str) -> None:
    data = embeddings(**_table(tmp_path, kind))
    assert data.classes == ("007", "lost card", "refund")  # a name of digits stays a name
    assert list(data.train.pool.ids) == ["q1", "q2", "q4"]
    assert data.train.pool.load(data.train.pool.ids).tolist() == [[0, 1], [2, 3], [6, 7]]
    assert data.train.labels.tolist() == [1, 2, 0]
    assert list(data.test.pool.ids) == ["q3", "q5"]
    assert data.test.labels.tolist() == [1, 2]


def test_a_tables_columns_can_be_called_otherwise(tmp_path: Path) -> None:
    files = _table(tmp_path, "csv", intent=["x", "y", "x", "y", "x"], part=ROWS["split"])
    data = embeddings(**files, label_column="intent", split_column="part")
    assert data.classes == ("x", "y")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("how", "options", "message"),
    [
        ({"n": 6}, {}, r"has 6 rows but the table '.*rows\.\w+' has 5"),
        ({}, {"label_column": "labell"}, r"has no column 'labell'\. Did you mean 'label'\? Choices: id, label, split"),
        ({}, {"split_column": "fold"}, "has no column 'fold'"),
        ({"split": ["a", "b", "a", "b", "a"]}, {}, "must say 'train' or 'test'; it says"),
        ({"split": ["train"] * 5}, {}, "must say 'train' or 'test'; it says"),
        ({"label": ["a", "", "b", "a", "b"]}, {}, "row 1 of the table .* has no value in column 'label'"),
        ({"id": ["q1", "q2", "q1", "q4", "q5"]}, {}, "id 'q1' stands at row 0 and again at row 2"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, kind: str, how, options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        embeddings(**_table(tmp_path, kind, **how), **options).fingerprint()


def test_a_missing_or_unreadable_table(tmp_path: Path) -> None:
    files = _table(tmp_path, "csv")
    with pytest.raises(InputError, match="does not exist"):
        embeddings(train=files["train"], table=tmp_path / "none.csv")
    for name in ("bad.parquet", "empty.csv", "ragged.csv"):
        (tmp_path / name).write_text("a,b\n1,2,3\n" if name == "ragged.csv" else "")
        with pytest.raises(InputError, match="cannot be read"):
            read_columns(tmp_path / name, ("a",))


def test_texts_with_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('label,text\n"a, b","he said ""no"",\nthen left"\nNA,null\n', encoding="utf-8")
    found = read_columns(path, ("label", "text"))
    assert found == {"label": ["a, b", "NA"], "text": ['he said "no",\nthen left', "null"]}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "has 3 rows but 2 labels"),
        ([0.5, 1.0, 2.0], "labels are one integer or text per row"),
        ([[0], [1], [2]], "labels are one integer or text per row"),
        ([b"a", b"b", b"c"], "labels are one integer or text per row"),
    ],
)
def test_wrong_labels_are_refused_by_name(tmp_path: Path, labels: object, message: str) -> None:
    files = _arrays(tmp_path, [0, 1, 2], [0])
    np.save(files["train_labels"], np.asarray(labels))
    with pytest.raises(InputError, match=message) as caught:
        embeddings(**files)
    assert "train" in str(caught.value)


def test_files_that_are_not_given_or_not_there(tmp_path: Path) -> None:
    files = _arrays(tmp_path, [0, 1], [0])
    with pytest.raises(ConfigError, match="needs `train`"):
        embeddings()
    with pytest.raises(ConfigError, match="`train_labels`, `test` and `test_labels`"):
        embeddings(train=files["train"])
    with pytest.raises(PoolError, match="does not exist"):
        embeddings(**{**files, "test": tmp_path / "none.npy"})
    np.save(tmp_path / "wide.npy", np.zeros((3, 3), dtype=np.float32))
    with pytest.raises(InputError, match=r"of 2 numbers, .*wide\.npy' of 3"):
        embeddings(**files, ood=tmp_path / "wide.npy")


def test_junk_is_opened_beside(tmp_path: Path) -> None:
    np.save(tmp_path / "junk.npy", np.zeros((7, 2), dtype=np.float16))
    data = embeddings(**_arrays(tmp_path, [0, 1], [0]), ood=tmp_path / "junk.npy")
    assert data.junk is not None
    assert len(data.junk.ids) == 7


def test_items_of_some_classes_are_renumbered() -> None:
    items = Labelled(ArrayPool(np.arange(5, dtype=np.float32)[:, None]), np.asarray([3, 1, 0, 3, 2]))
    found = items.of_classes(np.asarray([3, 0]))
    assert found.labels.tolist() == [0, 1, 0]
    assert found.pool.load(found.pool.ids).ravel().tolist() == [0, 2, 3]
