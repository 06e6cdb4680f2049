"""What a campaign is opened with: a pool, a strategy, a target model, and the store that must fit them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mqnet.data.images import ImagePool, open_array
from mqnet.data.pools import ArrayPool, open_parquet
from mqnet.errors import ConfigError, PoolError, StoreError, nearest_name
from mqnet.models.base import TargetModel
from mqnet.registry import MODEL, STRATEGY
from mqnet.store.campaign import CampaignStore
from mqnet.store.codec import from_json, to_json
from mqnet.strategies.base import Strategy
from mqnet.types import CampaignConfig, Plugin, Pool

PoolLike = Pool | NDArray[np.floating[Any]] | Tensor | str | Path


def as_plugin(value: str | Mapping[str, object]) -> Plugin:
    """A plug-in given as a name, or as a table with a name and options."""
    if isinstance(value, str):
        return Plugin(value)
    options = dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f"a plug-in with options needs a name: {dict(value)}.")
    return Plugin(name, options)


def as_pool(pool: PoolLike) -> Pool:
    """A pool from an array, a tensor, a path, or a pool."""
    if isinstance(pool, np.ndarray | Tensor):
        return ImagePool(pool) if pool.ndim == 4 else ArrayPool(pool)
    if isinstance(pool, str | Path):
        path = Path(pool)
        openers = {".npy": open_array, ".parquet": open_parquet}
        if path.suffix not in openers:
            raise PoolError(f"'{path}' is not a pool of vectors or images.{nearest_name(path.suffix, openers)}")
        return openers[path.suffix](path)
    return pool


def as_path(place: str | Path | None) -> Path | None:
    """A path, where there is one."""
    return None if place is None else Path(place)


def make_strategy(config: CampaignConfig, simulated: bool) -> Strategy:
    """A fresh strategy of the configuration; reference lines exist in simulations only."""
    entry = STRATEGY.get(config.strategy.name)
    if entry.reference and not simulated:
        raise ConfigError(
            f"strategy '{entry.name}' is a reference line that sees the truth: it runs in simulations only. "
            "Choose another strategy."
        )
    return STRATEGY.make(config.strategy.name, config.strategy.options)


def make_model(config: CampaignConfig) -> TargetModel:
    """The target model of the configuration."""
    return MODEL.make(config.model.name, config.model.options)


def place_of(pool: Pool) -> dict[str, object]:
    """Where a pool lies, if it lies in a file."""
    path = getattr(pool, "path", None)
    return {"path": str(Path(path).resolve())} if path is not None else {}


def open_store(folder: Path | None, config: CampaignConfig, pool: Mapping[str, object]) -> CampaignStore:
    """The campaign of a folder, or a new one; another configuration or another pool than is stored there is refused."""
    if folder is None or not (folder / "campaign.db").exists():
        return CampaignStore.create(folder, config, pool)
    store = CampaignStore.open(folder)
    if store.config() != from_json(to_json(config)):  # values, not texts: a budget of 10 is a budget of 10.0
        store.close()
        raise StoreError(
            f"'{folder}' holds a campaign with another configuration. Choose another folder, or continue that one "
            "with ActiveLearner.open(folder)."
        )
    stored = store.pool()
    if stored["fingerprint"] != pool["fingerprint"]:
        store.close()
        raise PoolError(
            f"the pool given is not the pool of the campaign in '{folder}': {stored['n_items']} items were there, "
            f"{pool['n_items']} are given, or their content differs. Point to the same items."
        )
    if stored != dict(pool):
        store.point_to(pool)
    return store
