"""Pools of images: uint8 arrays [N, 3, S, S], in memory or memory-mapped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mqnet.data.pools import ArrayPool, content_hash, open_npy, read_npy, rows_at_once, take_rows
from mqnet.errors import PoolError
from mqnet.ids import ItemIds, RowNames

Images = NDArray[np.uint8]


class ImagePool:
    """Square colour images uint8 [N, 3, S, S] with an id each; a mapped array is read where it is looked at."""

    def __init__(
        self,
        images: NDArray[Any] | Tensor,
        ids: ItemIds | Sequence[str] | None = None,
        *,
        source: str = "",
        path: Path | None = None,
    ) -> None:
        self.source = source or "the pool"
        self.path = path
        array = images.detach().cpu().numpy() if isinstance(images, Tensor) else images
        if array.dtype != np.uint8:
            raise PoolError(f"{self.source} holds {array.dtype}: images are uint8, 0 to 255.")
        if array.ndim != 4 or array.shape[1] != 3 or array.shape[2] != array.shape[3] or array.shape[2] == 0:
            raise PoolError(f"{self.source} has shape {array.shape}: images are [N, 3, S, S], square and in colour.")
        self._array = array
        if ids is None:
            self._ids = ItemIds(RowNames(len(array)))
        else:
            self._ids = ids if isinstance(ids, ItemIds) else ItemIds.of(ids)
            if self._ids.n_in_pool != len(array):
                raise PoolError(f"{self.source} has {len(array)} images but {self._ids.n_in_pool} ids were given.")

    @property
    def ids(self) -> ItemIds:
        """The items' ids: those given, or zero-padded row numbers."""
        return self._ids

    @property
    def images(self) -> Images:
        """All images of the array behind the pool, in its own row order."""
        return self._array

    @property
    def size(self) -> int:
        """The images' side S."""
        return int(self._array.shape[2])

    def load(self, ids: ItemIds) -> Tensor:
        """The images uint8 [n, 3, S, S] of these items, a copy."""
        return take_rows(self._array, ids, self._ids)

    def subset(self, ids: ItemIds) -> ImagePool:
        """The same images, of these items only; nothing is copied."""
        return ImagePool(self._array, ids, source=self.source)

    def fingerprint(self) -> str:
        """A hash over ids and pixels."""
        return self._fingerprint

    def signature(self) -> str:
        """The fingerprint: the pixels are at hand."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        chunk = rows_at_once(3 * self.size**2)
        return content_hash(f"uint8 3x{self.size}x{self.size}", self._ids, self.load, chunk=chunk)


def open_array(path: Path) -> ImagePool | ArrayPool:
    """A pool over a memory-mapped `.npy` file: images where it holds bytes in four dimensions, else vectors."""
    array = read_npy(path)
    if array.ndim == 4:
        return ImagePool(array, source=f"'{path}'", path=path)  # type: ignore[arg-type]  # pyright: ignore
    return open_npy(path)
