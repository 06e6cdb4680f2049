"""Scenarios: a pool with junk in it, its hidden truth, and test items of the known classes (METHOD 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.pools import ItemPool, MixedPool
from mqnet.errors import ConfigError
from mqnet.rng import Key
from mqnet.view import OOD_CLASS


@dataclass(frozen=True)
class Scenario:
    """A pool, what its items really are (class numbers, -1 for junk, in the order of `pool.ids`), and test items."""

    pool: ItemPool
    labels: NDArray[np.int64]
    test: Labelled
    classes: tuple[str, ...]
    reserved: Labelled | None = None
    """Independent labelled items outside the pool, in its proportions (-1 for junk), where they were asked for."""


def split(
    data: Dataset,
    *,
    seed: int,
    ood_share: float,
    known_classes: int | None = None,
    known_class_share: float | None = None,
    pool_size: int | None = None,
    reserve: int = 0,
) -> Scenario:
    """Some classes, drawn by seed, are known; items of the others are the junk that makes up `ood_share` of the pool.

    Without `pool_size` all training items of the known classes are in the pool; with it the pool is no larger than
    that, at the same share. `reserve` items, junk at that share too, are set apart first. Where the pool leaves as many
    over it is the same with and without them, so that campaigns stay paired; where it does not it is smaller.
    """
    n_known = _n_known(len(data.classes), known_classes, known_class_share)
    key = Key(seed).child("scenario", "split")
    drawn = np.sort(key.child("classes").numpy().permutation(len(data.classes))[:n_known])
    inside = np.flatnonzero(np.isin(data.train.labels, drawn))
    outside = np.flatnonzero(~np.isin(data.train.labels, drawn))
    known_order = _shuffled(key.child("known"), inside)
    junk_order = _shuffled(key.child("junk", str(ood_share)), outside)
    n_in, n_out = composition(len(inside), len(outside), ood_share, pool_size)
    reserved_out = round(ood_share * reserve) if reserve else 0
    left_in, left_out = len(inside) - (reserve - reserved_out), len(outside) - reserved_out
    if n_in > left_in or n_out > left_out:
        _check_reserve(reserve, reserved_out, len(inside), len(outside))
        n_in, n_out = composition(left_in, left_out, ood_share, pool_size)
    rows = np.sort(np.concatenate([known_order[:n_in], junk_order[:n_out]]))
    number = np.full(len(data.classes), OOD_CLASS, dtype=np.int64)
    number[drawn] = np.arange(n_known)
    train = data.train
    return Scenario(
        pool=train.pool.subset(train.pool.ids.take(rows)),
        labels=number[train.labels[rows]],
        test=data.test.of_classes(drawn),
        classes=tuple(data.classes[i] for i in drawn),
        reserved=_reserved(train, number, known_order[left_in:], junk_order[left_out:]) if reserve else None,
    )


def cross(data: Dataset, *, seed: int, ood_share: float, pool_size: int | None = None) -> Scenario:
    """All classes are known; junk from another data set makes up `ood_share` of the pool.

    Items are shuffled and numbered anew, so that neither an item's id nor its place tells where it came from.
    """
    if data.junk is None:
        raise ConfigError("scenario 'cross' needs `ood`: a file of vectors that belong to none of the classes.")
    key = Key(seed).child("scenario", "cross")
    n_train, n_junk = len(data.train.labels), len(data.junk.ids)
    n_in, n_out = composition(n_train, n_junk, ood_share, pool_size)
    inside = _shuffled(key.child("known"), np.arange(n_train))[:n_in]
    outside = _shuffled(key.child("junk", str(ood_share)), np.arange(n_junk))[:n_out]
    order = key.child("order").numpy().permutation(n_in + n_out)
    part_of = np.repeat(np.arange(2), [n_in, n_out])[order]
    rows = np.concatenate([inside, outside])[order]
    labels = np.concatenate([data.train.labels[inside], np.full(n_out, OOD_CLASS, dtype=np.int64)])
    pool = MixedPool((data.train.pool, data.junk), part_of, rows, source="the mixed pool")
    return Scenario(pool, labels[order], data.test, data.classes)


def composition(n_known: int, n_junk: int, ood_share: float, pool_size: int | None) -> tuple[int, int]:
    """How many known and junk items the pool holds, its OOD share met to the nearest item.

    >>> composition(600, 900, 0.4, None), composition(600, 900, 0.4, 500)
    ((600, 400), (300, 200))
    """
    if not 0 <= ood_share < 1:
        raise ConfigError(f"ood_share is {ood_share}: it must be at least 0 and below 1.")
    size = round(n_known / (1 - ood_share))
    if pool_size is not None:
        if pool_size < 1:
            raise ConfigError(f"pool_size is {pool_size}: a pool has at least one item.")
        size = min(size, pool_size)
    n_out = round(ood_share * size)
    if n_out > n_junk:
        raise ConfigError(
            f"ood_share {ood_share} of a pool of {size} items takes {n_out} junk items, but the data has {n_junk}. "
            f"Lower the share, or set pool_size to at most {int(n_junk / ood_share)}."
        )
    return size - n_out, n_out


def _n_known(n_classes: int, count: int | None, share: float | None) -> int:
    if (count is None) == (share is None):
        raise ConfigError("scenario 'split' takes either known_classes or known_class_share.")
    n_known = count if count is not None else round((share or 0.0) * n_classes)
    if not 1 <= n_known <= n_classes:
        asked = f"known_classes = {count}" if count is not None else f"known_class_share = {share}"
        raise ConfigError(f"{asked} asks for {n_known} known classes of the data set's {n_classes}.")
    return n_known


def _shuffled(key: Key, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[key.numpy().permutation(len(rows))]


def _check_reserve(n: int, n_out: int, n_known: int, n_junk: int) -> None:
    """Something must be left for a pool."""
    if n - n_out >= n_known or n_out > n_junk:
        raise ConfigError(
            f"an independent validation set of {n} items, as many as a query holds, takes {n - n_out} known and "
            f"{n_out} junk items, but the data has {n_known} and {n_junk} for it and the pool. Lower the budget."
        )


def _reserved(
    train: Labelled, number: NDArray[np.int64], known: NDArray[np.int64], junk: NDArray[np.int64]
) -> Labelled:
    """These items with their classes among the known ones."""
    rows = np.sort(np.concatenate([known, junk]))
    return Labelled(train.pool.subset(train.pool.ids.take(rows)), number[train.labels[rows]])
