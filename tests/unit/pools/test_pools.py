"""Pools: what opens, what is refused and by which words, and that opening a million rows costs nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from mqnet.data.pools import ArrayPool, open_npy, open_parquet, verify
from mqnet.errors import PoolError
from mqnet.ids import CHUNK, ItemIds
from mqnet.loop.learner import ActiveLearner

VECTORS = np.random.Generator(np.random.PCG64(0)).normal(size=(30, 6))
NAMES = [f"doc {i}" for i in range(30)]


def write_parquet(path: Path, vectors: list | np.ndarray, ids=None, kind=None) -> Path:
    lists = pa.array([None if row is None else list(row) for row in vectors], type=kind or pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": NAMES[: len(lists)] if ids is None else ids, "embedding": lists}), path)
    return path


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_was_stored_is_loaded(tmp_path: Path, dtype) -> None:
    exact = VECTORS.astype(dtype)
    np.save(tmp_path / "pool.npy", exact)
    for pool in (ArrayPool(exact), ArrayPool(torch.from_numpy(exact)), open_npy(tmp_path / "pool.npy")):
        assert pool.dim == 6
        assert list(pool.ids)[:2] == ["00", "01"]
        for rows in ([3], [4, 5, 6], [6, 4, 5], [29, 0], [7, 7], []):
            loaded = pool.load(pool.ids.take(np.asarray(rows, dtype=np.int64)))
            np.testing.assert_array_equal(loaded.numpy(), exact[rows], strict=True)
            assert loaded.is_contiguous()
        loaded.zero_()
        pool.load(pool.ids).zero_()  # a copy: the pool is read-only
        np.testing.assert_array_equal(pool.load(pool.ids).numpy(), exact)


def test_rows_are_found_by_id_alone() -> None:
    pool = ArrayPool(VECTORS, NAMES)
    wanted = ItemIds.of(["doc 7", "doc 2"])  # made elsewhere
    np.testing.assert_array_equal(pool.load(wanted).numpy(), VECTORS[[7, 2]])
    part = pool.subset(pool.ids.select(["doc 9", "doc 3", "doc 4"]))
    assert list(part.ids) == ["doc 9", "doc 3", "doc 4"]
    np.testing.assert_array_equal(part.load(part.ids.sorted()).numpy(), VECTORS[[3, 4, 9]])
    with pytest.raises(PoolError, match="item 'doc 99' is not in the pool"):
        pool.load(ItemIds.of(["doc 99"]))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((3, 2), np.int64), "holds int64: vectors are float16 or float32"),
        (np.zeros((3, 2), bool), "holds bool"),
        (np.zeros((3, 2), np.complex64), "holds complex64"),
        (np.zeros((3, 2), ">f4"), "holds >f4"),
        (np.asarray([["a", "b"]]), "holds <U1"),
        (np.zeros(3, np.float32), r"has shape \(3,\): expected one row per item"),
        (np.zeros((), np.float32), r"has shape \(\)"),
        (np.zeros((3, 0), np.float32), r"has shape \(3, 0\)"),
        (np.zeros((3, 2, 2), np.float32), r"has shape \(3, 2, 2\)"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray, words: str) -> None:
    with pytest.raises(PoolError, match=f"the pool {words}"):
        ArrayPool(array)
    np.save(tmp_path / "pool.npy", array)
    with pytest.raises(PoolError, match=rf"pool\.npy' {words}"):
        open_npy(tmp_path / "pool.npy")


def test_other_tensors_are_refused() -> None:
    with pytest.raises(PoolError, match="holds bfloat16"):
        ArrayPool(torch.zeros(3, 2, dtype=torch.bfloat16))
    assert ArrayPool(torch.zeros(3, 2, requires_grad=True)).dim == 2


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pool.npy"
    np.save(path, np.asarray([[None]], dtype=object), allow_pickle=True)
    objects = path.read_bytes()
    np.save(path, VECTORS)
    contents = {"empty": b"", "short": path.read_bytes()[:-8], "header": b"\x93NUMPY\x01\x00", "text": b"1,2,3\n"}
    contents |= {"objects": objects, "pickle": pickle.dumps(VECTORS)}
    with (tmp_path / "pool.npz").open("wb") as file:
        np.savez(file, VECTORS)
    contents["zip"] = (tmp_path / "pool.npz").read_bytes()
    for content in contents.values():
        path.write_bytes(content)
        with pytest.raises(PoolError, match=r"pool\.npy' is not a plain \.npy array"):
            open_npy(path)
    with pytest.raises(PoolError, match=r"nothing\.npy' does not exist"):
        open_npy(tmp_path / "nothing.npy")


def test_an_empty_file_of_vectors_opens(tmp_path: Path) -> None:
    np.save(tmp_path / "pool.npy", np.zeros((0, 4), np.float32))
    assert len(open_npy(tmp_path / "pool.npy").ids) == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("row", [0, 17, CHUNK + 3])
def test_the_first_value_that_is_no_number_is_named(value: float, dtype, row: int, tmp_path: Path) -> None:
    vectors = np.ones((CHUNK + 9, 3), dtype)
    vectors[row:, 1] = value
    pool = ArrayPool(vectors, [f"doc {i}" for i in range(len(vectors))])
    with pytest.raises(PoolError, match=rf"item 'doc {row}' \(row {row}\) of the pool holds -?(nan|inf) in column 1"):
        verify(pool)
    with pytest.raises(PoolError, match=f"'doc {row}'"):
        ActiveLearner(pool, ["cat"], budget=3, strategy="random", folder=tmp_path / "campaign")
    assert not (tmp_path / "campaign").exists()


def test_large_numbers_are_numbers() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        verify(ArrayPool(np.full((5, 64), np.finfo(dtype).max)))
        verify(ArrayPool(np.asarray([[np.finfo(dtype).max, -np.finfo(dtype).max] * 4])))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b", "a"], "id 'a' stands at row 0 and again at row 2"),
        (["a", "b", ""], "row 2"),
        (["a", 2, "c"], "row 1: 2"),
        (["a", "b"], "3 rows but 2 ids were given"),
        (["a", "b", "c", "d"], "3 rows but 4 ids were given"),
        (ItemIds.of(["a", "b"]), "3 rows but 2 ids were given"),
    ],
)
def test_ids_that_do_not_fit_are_refused_before_anything_is_written(names, words: str, tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=words):
        ActiveLearner(ArrayPool(VECTORS[:3], names), ["cat"], budget=3, strategy="random", folder=tmp_path / "campaign")
    assert not (tmp_path / "campaign").exists()


def test_a_fingerprint_is_of_content_and_ids(tmp_path: Path) -> None:
    exact = VECTORS.astype(np.float32)
    np.save(tmp_path / "c.npy", exact)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(exact))
    parquet = write_parquet(tmp_path / "pool.parquet", exact)
    fixed = write_parquet(tmp_path / "fixed.parquet", exact, kind=pa.list_(pa.float32(), 6))
    large = write_parquet(tmp_path / "large.parquet", exact, kind=pa.large_list(pa.float32()))
    table = pq.read_table(parquet)
    pq.write_table(table, tmp_path / "grouped.parquet", row_group_size=7)
    named = [
        ArrayPool(exact, NAMES),
        ArrayPool(torch.from_numpy(exact), np.asarray(NAMES)),
        ArrayPool(np.asfortranarray(exact), NAMES),
        ArrayPool(np.repeat(exact, 2, axis=0)[::2], NAMES),
        open_npy(tmp_path / "c.npy", NAMES),
        open_npy(tmp_path / "fortran.npy", NAMES),
        open_parquet(parquet),
        open_parquet(fixed),
        open_parquet(large),
        open_parquet(tmp_path / "grouped.parquet"),
    ]
    assert len({pool.fingerprint() for pool in named}) == 1
    numbered = {ArrayPool(exact).fingerprint(), open_npy(tmp_path / "c.npy").fingerprint()}
    assert numbered == {ArrayPool(exact, [f"{i:02d}" for i in range(30)]).fingerprint()}
    changed = exact.copy()
    changed[29, 5] = np.nextafter(changed[29, 5], np.float32(9))
    others = [
        ArrayPool(changed, NAMES),
        ArrayPool(exact, [*NAMES[:-1], "doc x"]),
        ArrayPool(exact.astype(np.float64), NAMES),
        ArrayPool(exact[:-1], NAMES[:-1]),
        ArrayPool(exact.reshape(60, 3), [*NAMES, *(f"more {i}" for i in range(30))]),
    ]
    assert len({pool.fingerprint() for pool in [named[0], *others]} | numbered) == 7


def test_parquet_of_half_precision(tmp_path: Path) -> None:
    half = VECTORS.astype(np.float16)
    pool = open_parquet(write_parquet(tmp_path / "pool.parquet", half, kind=pa.list_(pa.float16())))
    assert pool.fingerprint() == ArrayPool(half, NAMES).fingerprint()


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([[1, 2], [1, 2, 3], [1, 2]], "row 1 of column 'embedding' of .* has 3 values, row 0 has 2"),
        ([[1, 2], [1, 2], None], "row 2 of .* has 0 values, row 0 has 2"),
        ([None, [1, 2]], "no vector in row 0"),
        ([[], []], "no vector in row 0"),
        ([[1, 2], [1, None]], r"item 'doc 1' \(row 1\) .* holds nan in column 1"),
        ([[1, 2], [np.inf, 2]], "item 'doc 1'"),
    ],
)
def test_uneven_lists_are_named(tmp_path: Path, vectors: list, words: str) -> None:
    pool = open_parquet(write_parquet(tmp_path / "pool.parquet", vectors))
    with pytest.raises(PoolError, match=words):
        verify(pool)


def test_nulls_in_lists_of_a_fixed_length_are_named(tmp_path: Path) -> None:
    kind = pa.list_(pa.float32(), 2)
    pool = open_parquet(write_parquet(tmp_path / "pool.parquet", [[1, 2], None, [3, 4]], kind=kind))
    with pytest.raises(PoolError, match="row 1"):
        verify(pool)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a", None, "c"], "row 1 of .* has no id in column 'id'"),
        (["a", "b", "a"], "id 'a' stands at row 0 and again at row 2"),
    ],
)
def test_parquet_ids_are_checked(tmp_path: Path, ids: list, words: str) -> None:
    pool = open_parquet(write_parquet(tmp_path / "pool.parquet", [[1, 2]] * 3, ids))
    with pytest.raises(PoolError, match=words):
        verify(pool)


def test_parquet_ids_may_be_numbers(tmp_path: Path) -> None:
    pool = open_parquet(write_parquet(tmp_path / "pool.parquet", [[1, 2]] * 3, [30, 4, 5]))
    assert list(pool.ids.sorted()) == ["30", "4", "5"]


def test_parquet_of_something_else(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "pool.parquet", VECTORS)
    with pytest.raises(PoolError, match="has no column 'vector'; it has id, embedding"):
        open_parquet(path, vector_column="vector")
    with pytest.raises(PoolError, match="has no column 'name'"):
        open_parquet(path, id_column="name")
    with pytest.raises(PoolError, match="holds string: expected lists of floats"):
        open_parquet(path, id_column="embedding", vector_column="id")
    with pytest.raises(PoolError, match="holds lists of int32"):
        open_parquet(write_parquet(path, [[1, 2]], kind=pa.list_(pa.int32())))
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(PoolError, match="is not a Parquet file"):
        open_parquet(path)
    with pytest.raises(PoolError, match="does not exist"):
        open_parquet(tmp_path / "nothing.parquet")


def test_a_parquet_pool_in_a_campaign(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "pool.parquet", VECTORS)
    with ActiveLearner(path, ["cat"], budget=3, strategy="random", folder=tmp_path / "campaign") as learner:
        query = learner.ask()
    with ActiveLearner.open(tmp_path / "campaign") as learner:
        assert learner.ask() == query
    with ActiveLearner.open(tmp_path / "campaign", ArrayPool(VECTORS.astype(np.float32), NAMES)) as learner:
        assert learner.ask() == query


OPENING = """
import resource, sys, time
from pathlib import Path
from mqnet.data.pools import open_npy
import pyarrow, numpy, torch

before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
pool = open_npy(Path(sys.argv[1]))
some = pool.load(pool.ids.take(slice(999_990, 1_000_000)))
seconds = time.perf_counter() - began
assert (len(pool.ids), pool.dim, tuple(some.shape), pool.ids[999_999]) == (1_000_000, 256, (10, 256), "999999")
print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_opening_a_million_rows_costs_nothing(tmp_path: Path) -> None:
    # a sparse file: half a gigabyte that the disk never sees
    np.lib.format.open_memmap(tmp_path / "pool.npy", mode="w+", dtype=np.float16, shape=(1_000_000, 256))
    command = [sys.executable, "-c", OPENING, str(tmp_path / "pool.npy")]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, megabytes = map(float, out.split())
    assert seconds < 0.2
    assert megabytes < 50
