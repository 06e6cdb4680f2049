"""The contrastive columns of a campaign: the vectors themselves, or on images what coders make of them (METHOD 3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from pydantic import ValidationError

from mqnet.errors import ConfigError, nearest_name
from mqnet.ids import ItemIds
from mqnet.loop.coders import CoderJob, Shelf, Space
from mqnet.models.contrastive.config import KINDS, CoderConfig
from mqnet.models.encode import Watcher
from mqnet.types import Arrays, Pool

CODED = frozenset(KINDS)
"""The columns that coders give on pools of images."""


class Spaces:
    """The contrastive columns of a pool of images that a campaign needs; a coder is trained when first asked for."""

    def __init__(
        self,
        pool: Pool,
        columns: frozenset[str],
        config: CoderConfig,
        seed: int,
        shelf: Shelf,
        watch: Watcher | None = None,
    ) -> None:
        self.columns = columns & CODED
        self._pool, self._config, self._seed, self._shelf, self._watch = pool, config, seed, shelf, watch
        self._place: torch.Tensor | None = None

    def of(self, ids: ItemIds) -> Arrays:
        """The columns of these items of the pool, from what was computed once for all of it."""
        if not self.columns:
            return {}
        if self._place is None:
            rows = self._pool.ids.sorted().rows
            place = np.full(self._pool.ids.n_in_pool, -1, dtype=np.int64)
            place[rows] = np.arange(len(rows))
            self._place = torch.from_numpy(place)
        picked = self._place[torch.from_numpy(ids.rows_in(self._pool.ids))]
        return {name: self._space(name).rows[picked] for name in sorted(self.columns)}

    def of_others(self, pool: Pool) -> Arrays:
        """The columns of all items of another pool: coders have learned nothing from them."""
        images = pool.load(pool.ids) if self.columns else None
        return {} if images is None else {name: self._space(name).coder.encode(images) for name in self.columns}

    def _space(self, column: str) -> Space:
        job = CoderJob(KINDS[column], self._config, self._pool.fingerprint(), self._seed)
        return self._shelf.space(job, self._pool, self._watch)


def coder_config(options: CoderConfig | Mapping[str, object] | None) -> CoderConfig:
    """Coder options, checked; the first mistake is an error that names it."""
    if isinstance(options, CoderConfig):
        return options
    try:
        return CoderConfig.model_validate(dict(options or {}))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"coder has no option '{name}'.{nearest_name(name, CoderConfig.model_fields)}") from error
        raise ConfigError(f"coder: {name} is {first['input']!r}: {first['msg'].lower()}.") from error


def holds_images(pool: Pool) -> bool:
    """Whether the pool's items are images rather than vectors."""
    return pool.load(pool.ids.take(slice(0, 1))).ndim == 4
