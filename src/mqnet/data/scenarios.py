"""Scenarios: a pool with junk in it, its hidden truth, and test items of the known classes (METHOD 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.pools import ItemPool, MixedPool
from mqnet.errors import ConfigError
from mqnet.ids import ItemIds
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
    initial: ItemIds | None = None
    """Items of the pool whose labels are there before the campaign begins, in place of its first random sample."""


def split(
    data: Dataset,
    *,
    seed: int,
    ood_share: float = 0.0,
    known_classes: int | None = None,
    known_class_share: float | None = None,
    ood_classes: int | None = None,
    pool_size: int | None = None,
    reserve: int = 0,
) -> Scenario:
    """Some classes, drawn by seed, are known; items of the others are the junk that makes up `ood_share` of the pool.

    Without `pool_size` all training items of the known classes are in the pool; with it the pool is no larger than
    that, at the same share. `ood_classes` takes that many whole classes as junk instead, drawn by seed: the share is
    then what the classes' sizes make it. `reserve` items, junk at that share too, are set apart first. Where the pool
    leaves as many over it is the same with and without them, so that campaigns stay paired; where it does not it is
    smaller.
    """
    key = Key(seed).child("scenario", "split")
    n_known = n_known_classes("split", len(data.classes), known_classes, known_class_share)
    shuffled = key.child("classes").numpy().permutation(len(data.classes))
    drawn = np.sort(shuffled[:n_known])
    if ood_classes is None:
        junk, compose = None, partial(composition, ood_share=ood_share, pool_size=pool_size)
    else:
        if not 1 <= ood_classes <= len(data.classes) - n_known:
            raise ConfigError(
                f"ood_classes = {ood_classes}: {len(data.classes) - n_known} classes are left beside the known ones."
            )
        junk, compose = shuffled[n_known : n_known + ood_classes], partial(_whole, pool_size=pool_size)
    inside, outside = _parts(data.train, drawn, junk)
    known_order = _shuffled(key.child("known"), inside)
    junk_order = _shuffled(key.child("junk", "whole" if ood_classes is not None else str(ood_share)), outside)
    return _scenario(data, drawn, known_order, junk_order, compose, reserve)


def mismatch(
    data: Dataset,
    *,
    seed: int,
    known_classes: int | None = None,
    known_class_share: float | None = None,
    initial_share: float = 0.01,
    pool_size: int | None = None,
    reserve: int = 0,
) -> Scenario:
    """Some classes, drawn by seed, are known; all items of all other classes are junk in the pool.

    The share of junk is what the data makes it; `pool_size` keeps it. `initial_share` of each known class (to the
    nearest item, one at least) is labelled before the campaign begins, and nothing else is.
    """
    key = Key(seed).child("scenario", "mismatch")
    n_known = n_known_classes("mismatch", len(data.classes), known_classes, known_class_share)
    if n_known == len(data.classes):
        raise ConfigError("scenario 'mismatch' knows some of the classes only: with all of them there is no junk.")
    drawn = np.sort(key.child("classes").numpy().permutation(len(data.classes))[:n_known])
    inside, outside = _parts(data.train, drawn, None)
    known_order, junk_order = _shuffled(key.child("known"), inside), _shuffled(key.child("junk"), outside)
    made = _scenario(data, drawn, known_order, junk_order, partial(_whole, pool_size=pool_size), reserve)
    places: list[NDArray[np.int64]] = []
    for number in range(n_known):
        members = _shuffled(key.child("initial", number), np.flatnonzero(made.labels == number))
        places.append(members[: max(1, round(initial_share * len(members)))])
    return replace(made, initial=made.pool.ids.take(np.sort(np.concatenate(places))))


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


def n_known_classes(kind: str, n_classes: int, count: int | None, share: float | None) -> int:
    """How many of a data set's classes are known."""
    if (count is None) == (share is None):
        raise ConfigError(f"scenario '{kind}' takes either known_classes or known_class_share.")
    n_known = count if count is not None else round((share or 0.0) * n_classes)
    if not 1 <= n_known <= n_classes:
        asked = f"known_classes = {count}" if count is not None else f"known_class_share = {share}"
        raise ConfigError(f"{asked} asks for {n_known} known classes of the data set's {n_classes}.")
    return n_known


def _parts(
    train: Labelled, known: NDArray[np.int64], junk: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the known classes, and of the junk ones (all others where none are named)."""
    inside = np.isin(train.labels, known)
    return np.flatnonzero(inside), np.flatnonzero(~inside if junk is None else np.isin(train.labels, junk))


def _whole(n_known: int, n_junk: int, pool_size: int | None) -> tuple[int, int]:
    """All items; with a smaller `pool_size` as many of both as keep the share of junk, to the nearest item."""
    if pool_size is None or pool_size >= n_known + n_junk:
        return n_known, n_junk
    if pool_size < 1:
        raise ConfigError(f"pool_size is {pool_size}: a pool has at least one item.")
    n_out = round(pool_size * n_junk / (n_known + n_junk))
    return pool_size - n_out, n_out


def _scenario(
    data: Dataset,
    drawn: NDArray[np.int64],
    known: NDArray[np.int64],
    junk: NDArray[np.int64],
    compose: Callable[[int, int], tuple[int, int]],
    reserve: int,
) -> Scenario:
    """The first of these rows as a pool in the data's own order, the last of them reserved.

    `compose` says how many known and junk rows of so many make a pool.
    """
    n_in, n_out = compose(len(known), len(junk))
    reserved_out = round(n_out / (n_in + n_out) * reserve)
    left_in, left_out = len(known) - (reserve - reserved_out), len(junk) - reserved_out
    if n_in > left_in or n_out > left_out:
        _check_reserve(reserve, reserved_out, len(known), len(junk))
        n_in, n_out = compose(left_in, left_out)
    rows = np.sort(np.concatenate([known[:n_in], junk[:n_out]]))
    number = np.full(len(data.classes), OOD_CLASS, dtype=np.int64)
    number[drawn] = np.arange(len(drawn))
    train = data.train
    return Scenario(
        pool=train.pool.subset(train.pool.ids.take(rows)),
        labels=number[train.labels[rows]],
        test=data.test.of_classes(drawn),
        classes=tuple(data.classes[i] for i in drawn),
        reserved=_reserved(train, number, known[left_in:], junk[left_out:]) if reserve else None,
    )


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
