"""Round 0, before anything is known: in uniform random order, in a diverse one, or by likeness to the class names."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from mqnet.errors import ConfigError
from mqnet.ids import ItemIds
from mqnet.loop.rounds import initial_ranking
from mqnet.numerics.kmeanspp import k_means_plus_plus
from mqnet.numerics.ranking import top_n
from mqnet.rng import Key
from mqnet.store.blobs import Blobs
from mqnet.types import CampaignConfig, ItemId, Pool

MOST_ITEMS = 100_000
"""A diverse order looks at a uniform sample of so many items: a first batch needs no more of a larger pool."""


def first_ranking(pool: Pool, config: CampaignConfig, blobs: Blobs, n: int) -> list[tuple[ItemId, float]]:
    """The n first items of round 0, the same for every strategy; a prefix of any longer ranking."""
    if config.initial == "random":
        return initial_ranking(pool, config, n)
    key = Key(config.seed).child("initial", config.initial)
    if config.initial == "diverse":
        return diverse(pool, n, key)
    names = torch.from_numpy(np.array(blobs.get(config.class_vectors or "")["class_vectors"]))
    if len(names) != len(config.classes):
        raise ConfigError(f"class_vectors has {len(names)} rows for {len(config.classes)} classes: give one for each.")
    return by_names(pool, names, n)


def class_arrays(vectors: NDArray[np.floating[Any]] | Tensor) -> dict[str, NDArray[np.generic]]:
    """The class names' vectors [K, D] as they are stored; their digest is part of the campaign's configuration."""
    array = np.asarray(vectors.detach().cpu() if isinstance(vectors, Tensor) else vectors, dtype=np.float32)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise ConfigError(f"class_vectors has shape {array.shape}: expected a row of finite numbers for each class.")
    return {"class_vectors": array}


def diverse(pool: Pool, n: int, key: Key) -> list[tuple[ItemId, float]]:
    """k-means++ over the vectors: picks are drawn with odds in proportion to the squared distance to those before."""
    ids = pool.ids.sorted()
    order = torch.from_numpy(key.child("sample").uniform(ids.hashes()))
    rows = top_n(order, max(MOST_ITEMS, n))
    some = ids.take(rows.sort().values.numpy())
    vectors = _vectors(pool, some, "diverse").float()
    # distances do not change when all moves by one vector, and the first pick is the farthest from the pool's middle
    picks = k_means_plus_plus(torch.ones(len(some), 1), vectors - vectors.mean(0), n, key.torch())
    return [(item, -float(place)) for place, item in enumerate(some.take(picks.numpy()))]


def by_names(pool: Pool, names: Tensor, n: int) -> list[tuple[ItemId, float]]:
    """Classes take turns, each with the item left that its name's vector likes best; scores are the cosines."""
    ids = pool.ids.sorted()
    towards, closeness = normalize(names.float(), dim=1), torch.empty(len(ids), len(names))
    for piece, some in ids.chunks(16_384):
        vectors = _vectors(pool, some, "names").float()
        if vectors.shape[1] != names.shape[1]:
            raise ConfigError(
                f"class_vectors have {names.shape[1]} columns, the pool's vectors {vectors.shape[1]}: embed the class "
                "names with the encoder that embedded the pool."
            )
        closeness[piece] = normalize(vectors, dim=1) @ towards.T
    # after n items a class has had at most n: no turn looks further down its list
    best = [iter(top_n(column, n).tolist()) for column in closeness.T.contiguous()]
    picked: dict[int, float] = {}
    n_all = min(n, len(ids))
    while len(picked) < n_all:
        for k, rows in enumerate(best):
            row = next((row for row in rows if row not in picked), None)
            if row is not None and len(picked) < n_all:
                picked[row] = float(closeness[row, k])
    return list(zip(ids.take(np.asarray(list(picked), dtype=np.int64)), picked.values(), strict=True))


def _vectors(pool: Pool, ids: ItemIds, initial: str) -> Tensor:
    vectors = pool.load(ids)
    if vectors.ndim != 2:
        raise ConfigError(f"initial = '{initial}' needs a pool of vectors: embed the items first, or start at random.")
    return vectors
