"""Labelled data sets: what a simulation draws its pool, its truth and its test items from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mqnet.data.pools import ItemPool
from mqnet.errors import InputError


@dataclass(frozen=True)
class Labelled:
    """Items with a class number each."""

    pool: ItemPool
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.labels.ndim != 1 or len(self.labels) != len(self.pool.ids):
            raise InputError(
                f"{self.pool.source} has {len(self.pool.ids)} rows but {len(self.labels)} labels were given."
            )

    def of_classes(self, wanted: NDArray[np.int64]) -> Labelled:
        """The items of these classes, renumbered by their place in `wanted`."""
        number = np.full(int(max(self.labels.max(initial=0), wanted.max(initial=0))) + 1, -1, dtype=np.int64)
        number[wanted] = np.arange(len(wanted))
        rows = np.flatnonzero(number[self.labels] >= 0)
        return Labelled(self.pool.subset(self.pool.ids.take(rows)), number[self.labels[rows]])


@dataclass(frozen=True)
class Dataset:
    """A data set for simulations: training and test items, class names, and junk from elsewhere where there is some."""

    train: Labelled
    test: Labelled
    classes: tuple[str, ...]
    junk: ItemPool | None = None

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.train, self.test):
            digest.update(part.pool.signature().encode())
            digest.update(np.ascontiguousarray(part.labels).data)
        digest.update("\x00".join(self.classes).encode())
        if self.junk is not None:
            digest.update(self.junk.signature().encode())
        return digest.hexdigest()

    def fingerprint(self) -> str:
        """A hash of everything in it. Values are checked on the way; image files are told by name and length."""
        return self._fingerprint
