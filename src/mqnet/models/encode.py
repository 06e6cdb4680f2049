"""One pass over the pool: every column a round needs, computed once."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from mqnet.errors import PoolError
from mqnet.ids import ItemIds
from mqnet.models.base import FittedModel
from mqnet.types import Arrays, Pool

CHUNK = 16_384
"""Items a model sees at once: what a pass needs beyond its columns is a few of these chunks."""
IMAGE_BYTES = 2**22
"""Of images at once: some thousand small ones, so that a watcher hears of a slow net now and then."""


class Watcher(Protocol):
    """Told how far a pass is."""

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` items have been encoded."""
        ...


def encode_items(
    model: FittedModel,
    pool: Pool,
    ids: ItemIds,
    columns: frozenset[str],
    *,
    chunk: int | None = None,
    watch: Watcher | None = None,
) -> Arrays:
    """The asked columns of these items, row i for ids[i]; columns a model gives under several names are kept once.

    A value that is not a number stops the pass with an error that names the item.
    """
    out: Arrays = {}
    shared: dict[str, str] = {}
    if not columns:
        return out
    pieces = ids.chunks(chunk or _chunk(pool, ids)) if len(ids) else [(slice(0, 0), ids)]
    for piece, some in pieces:
        encoded = model.encode(pool.load(some), columns)
        first: dict[int, str] = {}
        for name in sorted(encoded):
            column = encoded[name]
            original = first.setdefault(id(column), name)
            if original != name:
                shared[name] = original
                continue
            _check(column, name, some)
            if name not in out:
                out[name] = torch.empty((len(ids), *column.shape[1:]), dtype=column.dtype)
            out[name][piece] = column
        if watch is not None:
            watch(piece.stop, len(ids))
    return out | {name: out[original] for name, original in shared.items()}


def _chunk(pool: Pool, ids: ItemIds) -> int:
    example = pool.load(ids.take(slice(0, 1)))
    return CHUNK if example.ndim == 2 else max(1, min(CHUNK, IMAGE_BYTES // max(1, example.nbytes)))


def _check(column: Tensor, name: str, ids: ItemIds) -> None:
    # a sum is one cheap pass; an exact look follows only where it is not finite
    if bool(column.sum(dtype=torch.float32).isfinite()):
        return
    broken = ~column.reshape(len(ids), -1).isfinite().all(dim=1)
    if bool(broken.any()):
        item = ids[int(broken.nonzero()[0])]
        raise PoolError(f"item '{item}': its column '{name}' is not finite. Check the item and the model's training.")
