"""Item ids: stable strings for people, vectors for machines.

`ItemIds` is an ordered selection of items. Strings are made only when somebody looks at them, so opening a pool of a
million rows builds none. Row numbers stay inside: two selections of one pool understand each other at array speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mqnet.errors import PoolError
from mqnet.rng import hash_bytes

Rows = NDArray[np.int64]
CHUNK = 65_536


class Names(Protocol):
    """All ids of a pool: row number to string and back."""

    def __len__(self) -> int: ...
    def at(self, rows: Rows) -> list[str]:
        """The ids of these rows."""
        ...

    def find(self, ids: Sequence[str]) -> Rows:
        """The rows of these ids, -1 where there is none."""
        ...

    def hashes(self, rows: Rows) -> NDArray[np.uint64]:
        """A 64-bit hash of each id: a function of the string alone."""
        ...

    def order(self, rows: Rows) -> Rows:
        """The same rows, sorted by id."""
        ...


class RowNames:
    """Ids made of row numbers, zero-padded so that their order is the rows' order: '0000042'."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.width = max(1, len(str(max(0, n - 1))))

    def __len__(self) -> int:
        return self.n

    def at(self, rows: Rows) -> list[str]:
        """The ids of these rows."""
        return [f"{row:0{self.width}d}" for row in rows.tolist()]

    def find(self, ids: Sequence[str]) -> Rows:
        """The rows of these ids, -1 where there is none."""
        found = [int(i) if len(i) == self.width and i.isascii() and i.isdigit() else -1 for i in ids]
        rows = np.asarray(found, dtype=np.int64)
        return np.where(rows < self.n, rows, -1)

    def hashes(self, rows: Rows) -> NDArray[np.uint64]:
        """A 64-bit hash of each id, the digits computed without making strings."""
        out = np.empty(len(rows), dtype=np.uint64)
        powers = 10 ** np.arange(self.width - 1, -1, -1, dtype=np.int64)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            out[start : start + CHUNK] = hash_bytes((part[:, None] // powers % 10 + ord("0")).astype(np.uint8))
        return out

    def order(self, rows: Rows) -> Rows:
        """The same rows, sorted by id."""
        return np.sort(rows)


class StringNames:
    """Ids given as strings, unique and not empty; checked when first needed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _rows(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        for row, name in enumerate(self._names):
            if not _usable(name):
                raise PoolError(
                    f"row {row}: {name!r} is not a usable id. Ids are non-empty Unicode strings without NUL."
                )
            if rows.setdefault(name, row) != row:
                raise PoolError(f"id '{name}' stands at row {rows[name]} and again at row {row}. Ids must be unique.")
        return rows

    @cached_property
    def _rank(self) -> Rows:
        _ = self._rows  # equal ids have no order
        rank = np.empty(len(self), dtype=np.int64)
        rank[np.asarray(sorted(range(len(self)), key=self._names.__getitem__), dtype=np.int64)] = np.arange(len(self))
        return rank

    def at(self, rows: Rows) -> list[str]:
        """The ids of these rows."""
        return [str(self._names[row]) for row in rows.tolist()]

    def find(self, ids: Sequence[str]) -> Rows:
        """The rows of these ids, -1 where there is none."""
        rows = self._rows  # looked up before the loop: no ids to find is no reason to skip the check of the names
        return np.asarray([rows.get(name, -1) for name in ids], dtype=np.int64)

    def hashes(self, rows: Rows) -> NDArray[np.uint64]:
        """A 64-bit hash of each id's UTF-8 bytes."""
        _ = self._rows  # a pool's fingerprint is the check of its ids, and it reads nothing but their hashes
        out = np.empty(len(rows), dtype=np.uint64)
        for start in range(0, len(rows), CHUNK):
            packed = np.asarray([name.encode() for name in self.at(rows[start : start + CHUNK])], dtype=np.bytes_)
            width = max(1, packed.dtype.itemsize)
            out[start : start + CHUNK] = hash_bytes(packed.view(np.uint8).reshape(len(packed), width))
        return out

    def order(self, rows: Rows) -> Rows:
        """The same rows, sorted by id."""
        return rows[np.argsort(self._rank[rows], kind="stable")]


def _usable(name: object) -> bool:
    if not isinstance(name, str) or not name or "\x00" in name:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate, as an undecodable file name has: no database takes it
        return False
    return True


class ItemIds(Sequence[str]):
    """An ordered selection of a pool's items, usable as a sequence of id strings."""

    def __init__(self, names: Names, rows: Rows | None = None) -> None:
        self._names = names
        self._rows = rows  # None: every row in order; a million-row pool opens without building this array

    @classmethod
    def of(cls, ids: Iterable[str]) -> ItemIds:
        """Ids from strings."""
        return cls(StringNames(list(ids)))

    @property
    def names(self) -> Names:
        """All ids of the pool these were selected from."""
        return self._names

    @property
    def n_in_pool(self) -> int:
        """How many items the pool has that these ids were selected from."""
        return len(self._names)

    @property
    def rows(self) -> Rows:
        """Row numbers of the selection: for the pool that made these ids, nobody else."""
        return np.arange(len(self._names), dtype=np.int64) if self._rows is None else self._rows

    def rows_in(self, pool_ids: ItemIds) -> Rows:
        """Row numbers of the selection in the pool whose ids are given; ids the pool does not hold are an error."""
        if pool_ids._names is self._names:
            return self.rows
        return pool_ids.find(list(self))

    def find(self, ids: Sequence[str]) -> Rows:
        """Pool rows of these ids; an id the pool does not hold is an error that names it."""
        rows = self._names.find(ids)
        if (rows < 0).any():
            missing = ids[int(np.flatnonzero(rows < 0)[0])]
            raise PoolError(f"item '{missing}' is not in the pool of {len(self._names)} items.")
        return rows

    def select(self, ids: Sequence[str]) -> ItemIds:
        """These ids as a selection of the same pool, in their order."""
        return ItemIds(self._names, self.find(ids))

    def take(self, positions: NDArray[np.integer] | slice) -> ItemIds:
        """The items at these positions of the selection."""
        if self._rows is None and isinstance(positions, slice):
            return ItemIds(self._names, np.arange(*positions.indices(len(self)), dtype=np.int64))
        return ItemIds(self._names, self.rows[positions])

    def without(self, ids: Sequence[str]) -> ItemIds:
        """The selection less these ids, in order."""
        gone = np.zeros(len(self._names), dtype=bool)
        gone[self.find(ids)] = True
        return ItemIds(self._names, self.rows[~gone[self.rows]])

    def sorted(self) -> ItemIds:
        """The same items in the order of their ids."""
        return ItemIds(self._names, self._names.order(self.rows))

    def hashes(self) -> NDArray[np.uint64]:
        """A 64-bit hash of each id [N]: the key of its randomness."""
        return self._names.hashes(self.rows)

    def chunks(self, size: int) -> Iterator[tuple[slice, ItemIds]]:
        """Consecutive pieces of at most `size` items, each with its slice."""
        for start in range(0, len(self), size):
            piece = slice(start, min(start + size, len(self)))
            yield piece, self.take(piece)

    def __len__(self) -> int:
        return len(self._names) if self._rows is None else len(self._rows)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # pyright: ignore
        if isinstance(index, slice):
            return self.take(index)
        return self._names.at(self.rows[[index]])[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), CHUNK):
            yield from self._names.at(self.take(slice(start, start + CHUNK)).rows)

    def __repr__(self) -> str:
        shown = ", ".join(list(self.take(slice(0, 3))))
        return f"ItemIds({len(self)}: {shown}{', …' if len(self) > 3 else ''})"
