"""Junk from elsewhere: images of none of the classes, prepared as the cross-dataset setup does (METHOD 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mqnet.data.archives import as_folder
from mqnet.data.files import FilePool
from mqnet.data.pools import ItemPool, MixedPool
from mqnet.data.sources import image_refs
from mqnet.errors import InputError

Places = Path | tuple[Path, ...] | None
"""A folder or archive of images, or several."""


def open_junk(places: Places, size: int) -> ItemPool | None:
    """The images of all these places, each cut to a random square and resized; None where no place is given."""
    if places is None:
        return None
    parts = [_open(place, size) for place in (places if isinstance(places, tuple) else (places,))]
    if len(parts) == 1:
        return parts[0]
    lengths = [len(part.ids) for part in parts]
    rows = np.concatenate([np.arange(n) for n in lengths])
    return MixedPool(parts, np.repeat(np.arange(len(parts)), lengths), rows, source="the junk")


def _open(place: Path, size: int) -> FilePool:
    if not place.exists():
        raise InputError(f"the junk `ood` is not at '{place}': there is no such folder or archive.")
    folder = as_folder(place)
    refs: Sequence[str] = image_refs(folder)
    if not refs:
        raise InputError(f"the junk `ood` at '{place}' holds no image.")
    return FilePool(folder, refs, size, crop=True)
