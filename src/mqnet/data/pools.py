"""Pools of vectors: arrays in memory, memory-mapped `.npy` files, Parquet tables; and what data sets ask of a pool."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mqnet.data.sources import ids_beside
from mqnet.errors import PoolError
from mqnet.ids import CHUNK, ItemIds, RowNames, StringNames

FLOATS = (np.float16, np.float32, np.float64)


class ItemPool(Protocol):
    """A pool that data sets and scenarios are made of: selections of it are pools too, and copy nothing."""

    source: str
    """What messages call it."""

    @property
    def ids(self) -> ItemIds:
        """Stable, user-visible ids of its items."""
        ...

    def load(self, ids: ItemIds) -> Tensor:
        """The model input of these items, one row each, in their order."""
        ...

    def subset(self, ids: ItemIds) -> ItemPool:
        """The same content, of these items only."""
        ...

    def fingerprint(self) -> str:
        """A hash of ids and content."""
        ...

    def signature(self) -> str:
        """What tells it from other pools without reading all of it: the fingerprint where that is cheap."""
        ...


def take_rows(array: NDArray[Any], ids: ItemIds, own: ItemIds) -> Tensor:
    """A copy of the rows of `array` (whose ids are `own`) that belong to `ids`, in their order."""
    rows = ids.rows_in(own)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and bool((np.diff(rows) == 1).all()):
        part = array[rows[0] : rows[-1] + 1]  # a slice reads a mapped file in order
        return torch.from_numpy(np.array(part, order="C"))
    return torch.from_numpy(np.ascontiguousarray(array[rows]))


def rows_at_once(n_bytes: int) -> int:
    """How many rows of so many bytes are read together: about as much memory for vectors as for pictures."""
    return max(1, min(CHUNK, 2**28 // max(1, n_bytes)))


def content_hash(
    header: str,
    ids: ItemIds,
    load: Callable[[ItemIds], Tensor],
    *,
    check: Callable[[Tensor], None] | None = None,
    chunk: int = CHUNK,
) -> str:
    """A hash over header, ids and content in the order of the ids, whatever the order of the rows behind them."""
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for _, piece in ids.sorted().chunks(chunk):
        content = load(piece)
        if check is not None:
            check(content)
        digest.update(piece.hashes().tobytes())
        digest.update(content.numpy().data)
    return digest.hexdigest()


class MixedPool:
    """Items of several pools under new ids, row numbers that do not tell where an item came from.

    Item i is item `rows[i]` (a place in the part's own ids) of part `part_of[i]`; nothing is copied.
    """

    def __init__(
        self,
        parts: Sequence[ItemPool],
        part_of: NDArray[np.int64],
        rows: NDArray[np.int64],
        *,
        source: str,
        ids: ItemIds | None = None,
    ) -> None:
        self.source = source
        self.parts, self.part_of, self._rows = tuple(parts), part_of, rows
        self._own = ItemIds(RowNames(len(rows))) if ids is None else ItemIds(ids.names)
        self.ids = self._own if ids is None else ids

    def load(self, ids: ItemIds) -> Tensor:
        """The content of these items, each read from the pool it lies in."""
        own = ids.rows_in(self._own)
        out: Tensor | None = None
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(self.part_of[own] == number)
            if not len(here) and (out is not None or number + 1 < len(self.parts)):
                continue
            found = part.load(part.ids.take(self._rows[own[here]]))
            if out is None:
                out = torch.empty((len(own), *found.shape[1:]), dtype=found.dtype)
            out[torch.from_numpy(here)] = found
        assert out is not None
        return out

    def subset(self, ids: ItemIds) -> MixedPool:
        """The same content, of these items only."""
        return MixedPool(self.parts, self.part_of, self._rows, source=self.source, ids=ids)

    def fingerprint(self) -> str:
        """A hash of ids and content."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        one = self.load(self.ids.take(slice(0, 1)))
        header = f"{one.numpy().dtype} {'x'.join(str(n) for n in one.shape[1:])}"
        return content_hash(header, self.ids, self.load, check=_all_finite, chunk=rows_at_once(one.nbytes))

    def signature(self) -> str:
        """Of the parts' signatures and what was taken of them."""
        digest = hashlib.blake2b("".join(part.signature() for part in self.parts).encode(), digest_size=16)
        own = self.ids.rows_in(self._own)
        digest.update(np.ascontiguousarray(self.part_of[own]).data)
        digest.update(np.ascontiguousarray(self._rows[own]).data)
        return digest.hexdigest()


def _all_finite(content: Tensor) -> None:
    # the parts' own pools have named the item where they were opened; this is the last line of defence
    if content.is_floating_point() and not bool(content.sum(dtype=torch.float64).isfinite()):
        raise PoolError("a mixed pool holds a value that is not a finite number. Check the pools it is made of.")


class ArrayPool:
    """Vectors [N, D] (float16, float32 or float64), in memory or memory-mapped, with an id each.

    Opening looks at the shape and the type alone; values are checked by `verify`, before a campaign writes anything.
    """

    def __init__(
        self,
        vectors: NDArray[np.floating[Any]] | Tensor,
        ids: ItemIds | Sequence[str] | None = None,
        *,
        source: str = "",
        path: Path | None = None,
    ) -> None:
        self.source = source or "the pool"
        self.path = path
        if isinstance(vectors, Tensor) and vectors.dtype == torch.bfloat16:
            raise PoolError(f"{self.source} holds bfloat16: vectors are float16 or float32. Convert with `.float()`.")
        array = vectors.detach().cpu().numpy() if isinstance(vectors, Tensor) else vectors
        _refuse_other_arrays(array, self.source)
        self._array = array
        if ids is None:
            self._ids = ItemIds(RowNames(len(array)))
        else:
            self._ids = ids if isinstance(ids, ItemIds) else ItemIds.of(ids)
            if self._ids.n_in_pool != len(array):
                raise PoolError(f"{self.source} has {len(array)} rows but {self._ids.n_in_pool} ids were given.")

    @property
    def ids(self) -> ItemIds:
        """The items' ids: those given, or zero-padded row numbers."""
        return self._ids

    @property
    def vectors(self) -> NDArray[np.floating[Any]]:
        """All vectors of the array behind the pool, in its own row order."""
        return self._array

    @property
    def dim(self) -> int:
        """The vectors' length D."""
        return int(self._array.shape[1])

    def load(self, ids: ItemIds) -> Tensor:
        """The vectors [n, D] of these items, a copy in the pool's own type, row after row whatever the file's order."""
        return take_rows(self._array, ids, self._ids)

    def subset(self, ids: ItemIds) -> ArrayPool:
        """The same vectors, of these items only; nothing is copied."""
        return ArrayPool(self._array, ids, source=self.source)

    def fingerprint(self) -> str:
        """A hash over type, ids and values."""
        return self._fingerprint

    def signature(self) -> str:
        """The fingerprint: vectors are read in a moment."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        """Computed together with the check of every value: one pass does both."""

        def check(vectors: Tensor) -> None:
            # float32 sums of float16 rows cannot overflow; an exact look follows only where a sum is suspicious
            suspicious = ~vectors.sum(dim=1, dtype=torch.float32).isfinite()
            if bool(suspicious.any()):
                self._refuse_broken_rows()

        return content_hash(f"{self._array.dtype} {self.dim}", self._ids, self.load, check=check)

    def _refuse_broken_rows(self) -> None:
        for _, piece in self._ids.chunks(CHUNK):
            vectors = self.load(piece)
            broken = (~vectors.isfinite().all(dim=1)).nonzero()
            if len(broken):
                row = int(broken[0])
                column = int((~vectors[row].isfinite()).nonzero()[0])
                raise PoolError(
                    f"item '{piece[row]}' (row {int(piece.rows[row])}) of {self.source} holds "
                    f"{vectors[row, column].item()} in column {column}. Every value must be a finite number: "
                    "repair or drop the row."
                )


def verify(pool: ItemPool) -> None:
    """Check every id and every value of a pool; the first bad one is an error that names it."""
    pool.fingerprint()


def _refuse_other_arrays(array: NDArray[Any], source: str) -> None:
    """Everything but rows of float16 or float32 is an error that names what was given."""
    if not any(array.dtype == kind for kind in FLOATS):
        raise PoolError(f"{source} holds {array.dtype}: vectors are float16 or float32. Convert with `.astype`.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise PoolError(f"{source} has shape {array.shape}: expected one row per item and at least one column.")


def read_npy(path: Path) -> NDArray[np.generic]:
    """A `.npy` file, memory-mapped: nothing is read but its header."""
    if not path.is_file():
        raise PoolError(f"the file '{path}' does not exist.")
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise PoolError(f"'{path}' is not a plain .npy array: {error}") from error


def open_npy(path: Path, ids: Sequence[str] | None = None) -> ArrayPool:
    """A pool over a memory-mapped `.npy` file of vectors; ids are given, in an `.ids.json` beside it, or numbers."""
    array = read_npy(path)
    _refuse_other_arrays(array, f"'{path}'")  # before its rows are counted: a single number has none
    # with ids of its own the pool cannot be opened again by its path alone
    found = path if ids is None else None
    names = ids_beside(path, len(array)) if ids is None else ids
    return ArrayPool(array, names, source=f"'{path}'", path=found)  # type: ignore[arg-type]  # pyright: ignore


def open_parquet(path: Path, *, id_column: str = "id", vector_column: str = "embedding") -> ArrayPool:
    """A pool over a Parquet table with an id column and a column of equally long lists of floats.

    Opening reads the table's footer; vectors and ids are read when first needed and then kept in memory, since Parquet
    pages cannot be mapped (write `.npy` for pools beyond memory).
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise PoolError(f"the file '{path}' does not exist.")
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowException as error:
        raise PoolError(f"'{path}' is not a Parquet file: {error}") from error
    columns = file.schema_arrow.names
    for name in (id_column, vector_column):
        if name not in columns:
            raise PoolError(f"'{path}' has no column '{name}'; it has {', '.join(columns)}.")
    names = StringNames(_ParquetIds(path, id_column, file.metadata.num_rows))
    pool = ParquetPool(path, vector_column, ItemIds(names), file.schema_arrow.field(vector_column).type)
    if (id_column, vector_column) != ("id", "embedding"):
        pool.path = None  # it cannot be opened again by its path alone
    return pool


class ParquetPool(ArrayPool):
    """An `ArrayPool` whose vectors are read from a Parquet column when first needed."""

    def __init__(self, path: Path, column: str, ids: ItemIds, kind: Any) -> None:
        import pyarrow as pa

        self.source = f"column '{column}' of '{path}'"
        if not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)):
            raise PoolError(f"{self.source} holds {kind}: expected lists of floats.")
        if kind.value_type not in (pa.float16(), pa.float32(), pa.float64()):
            raise PoolError(f"{self.source} holds lists of {kind.value_type}: vectors are float16 or float32.")
        self.path: Path | None = path
        self._path, self._column, self._ids = path, column, ids

    @cached_property
    def _array(self) -> NDArray[np.floating[Any]]:  # type: ignore[override]  # pyright: ignore
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet as pq

        compute: Any = pyarrow.compute  # its functions are made at import time, unseen by type checkers
        lists = pq.read_table(self._path, columns=[self._column]).column(0)
        lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy()
        if len(lengths) == 0 or lengths[0] == 0:
            raise PoolError(f"{self.source} has no vector in row 0.")
        if (lengths != lengths[0]).any():
            row = int(np.flatnonzero(lengths != lengths[0])[0])
            raise PoolError(
                f"row {row} of {self.source} has {lengths[row]} values, row 0 has {lengths[0]}: "
                "all vectors must be equally long."
            )
        flat = compute.list_flatten(lists)
        values = pyarrow.concat_arrays(flat.chunks).to_numpy(zero_copy_only=False)
        return values.reshape(len(lists), int(lengths[0]))


class _ParquetIds(Sequence[str]):
    """The id column as strings, read when first looked at."""

    def __init__(self, path: Path, column: str, n: int) -> None:
        self._path, self._column, self._n = path, column, n

    @cached_property
    def _values(self) -> list[str]:
        import pyarrow.parquet as pq

        values = pq.read_table(self._path, columns=[self._column]).column(0).to_pylist()
        for row, value in enumerate(values):
            if value is None:
                raise PoolError(f"row {row} of '{self._path}' has no id in column '{self._column}'.")
        return [value if isinstance(value, str) else str(value) for value in values]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._values[index]

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)
