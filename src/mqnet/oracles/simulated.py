"""Oracles that know the truth, for experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqnet.errors import ConfigError, PoolError
from mqnet.ids import ItemIds
from mqnet.rng import Key
from mqnet.types import OOD, Answer, ItemId, Known, Query

_UNKNOWN = -2


@dataclass(frozen=True)
class Truth:
    """What every item of a pool really is: class numbers [N], -1 for OOD, in the order of `ids`."""

    ids: ItemIds
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.labels.shape != (len(self.ids),):
            raise ConfigError(f"the truth has {len(self.labels)} labels for {len(self.ids)} items.")
        if self.labels.min(initial=0) < -1 or self.labels.max(initial=0) >= len(self.classes):
            raise ConfigError(
                f"the truth holds class numbers {self.labels.min()} to {self.labels.max()}; "
                f"they lie between -1 (OOD) and {len(self.classes) - 1}."
            )

    def of(self, items: Sequence[str] | ItemIds) -> NDArray[np.int64]:
        """The class numbers of these items."""
        by_row = np.full(self.ids.n_in_pool, _UNKNOWN, dtype=np.int64)
        by_row[self.ids.rows] = self.labels
        rows = items.rows_in(self.ids) if isinstance(items, ItemIds) else self.ids.find(items)
        labels = by_row[rows]
        if (labels == _UNKNOWN).any():
            missing = items[int(np.flatnonzero(labels == _UNKNOWN)[0])]
            raise PoolError(f"the truth of item '{missing}' is not known: it covers {len(self.ids)} other items.")
        return labels


@dataclass(frozen=True)
class SimulatedOracle:
    """Answers every item at once and truly."""

    truth: Truth

    def collect(self, query: Query) -> Mapping[ItemId, Answer]:
        """The true answer of every open item."""
        labels = self.truth.of(query.items).tolist()
        return {item: self._answer(label) for item, label in zip(query.items, labels, strict=True)}

    def _answer(self, label: int) -> Answer:
        return Known(self.truth.classes[label]) if label >= 0 else OOD


@dataclass(frozen=True)
class NoisyOracle:
    """Answers at once, with mistakes: confuses known classes and takes junk for a known class, at given rates.

    A mistake depends on the item alone (and the key), not on when it is asked.
    """

    truth: Truth
    confuses_known: float = 0.0
    misses_ood: float = 0.0
    key: Key = Key(0)  # noqa: RUF009  # a frozen value

    def __post_init__(self) -> None:
        for name, rate in (("confuses_known", self.confuses_known), ("misses_ood", self.misses_ood)):
            if not 0 <= rate <= 1:
                raise ConfigError(f"{name} is {rate}: a rate lies between 0 and 1.")

    def collect(self, query: Query) -> Mapping[ItemId, Answer]:
        """An answer for every open item."""
        ids = ItemIds.of(query.items)
        labels = self.truth.of(query.items)
        n_classes = len(self.truth.classes)
        wrong = self.key.child("wrong").uniform(ids.hashes())
        other = self.key.child("which").uniform(ids.hashes())
        missed = (labels < 0) & (wrong < self.misses_ood)
        confused = (labels >= 0) & (wrong < self.confuses_known) & (n_classes > 1)
        shift = 1 + np.floor(other * max(1, n_classes - 1)).astype(np.int64)  # to any class but the true one
        given = np.where(confused, (labels + shift) % n_classes, labels)
        given = np.where(missed, np.floor(other * n_classes).astype(np.int64), given).tolist()
        return {
            item: Known(self.truth.classes[label]) if label >= 0 else OOD
            for item, label in zip(query.items, given, strict=True)
        }
