"""What is wrong with a pool, found before anything is trained on it. Every item is looked at; nothing is changed."""

from __future__ import annotations

import hashlib
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mqnet.data.decode import read_picture
from mqnet.data.sources import Source
from mqnet.errors import ImageError, PoolError

Watch = Callable[[int, int], None]
"""Told how many items of how many have been looked at."""

READERS = 4
FEW = 5
"""A class with fewer items than this is pointed out."""
THUMB = 8
ALIKE = 6.0
"""Mean difference of two thumbnails, in 255ths, up to which two pictures of one outline are nearly the same."""
MOST_COMPARED = 64
"""Pictures of a common outline (a clear sky) that a new one is compared with."""
CHUNK = 16_384


@dataclass(frozen=True)
class Report:
    """The findings. `faults` and `empty` must be mended before the pool is used; the rest is worth knowing."""

    path: Path
    kind: str
    n_items: int
    faults: Mapping[str, Mapping[str, str]]
    """For each sort of fault, the items that have it and a sentence on each."""
    duplicates: Sequence[Sequence[str]] = ()
    """Groups of items with the same content."""
    nearly: Sequence[Sequence[str]] = ()
    """Groups of images that look the same though their files differ."""
    oddities: Mapping[str, int] = field(default_factory=dict[str, int])
    """Unusual but handled: how many images are 16-bit, CMYK, rotated by EXIF …"""
    classes: Mapping[str, int] = field(default_factory=dict[str, int])
    unlabelled: int = 0
    empty_classes: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def n_faulty(self) -> int:
        """How many items must be mended or removed."""
        return len({item for items in self.faults.values() for item in items})


def examine(source: Source, watch: Watch | None = None) -> Report:
    """Look at every item of a source."""
    try:
        source.ids.hashes()  # ids that are empty, twice there, or not writable are an error that names the row
    except PoolError as error:
        return Report(source.path, source.kind, len(source), {"unusable id": {"": str(error)}})
    look = {"image": _images, "text": _texts, "vector": _vectors}[source.kind]
    return look(source, watch or (lambda done, total: None))


@dataclass(frozen=True)
class _Seen:
    digest: bytes
    outline: bytes
    thumb: NDArray[np.uint8]
    oddities: tuple[str, ...]
    shape: tuple[int, int]


def _images(source: Source, watch: Watch) -> Report:
    faults: dict[str, dict[str, str]] = {}
    odd: Counter[str] = Counter()
    same: dict[bytes, list[str]] = {}
    alike = _Alike()
    sides: list[int] = []
    for done, (ref, found) in enumerate(_look_at_all(source), 1):
        if isinstance(found, ImageError):
            faults.setdefault(found.fault, {})[ref] = str(found)
        else:
            odd.update(found.oddities)
            sides.append(min(found.shape))
            group = same.setdefault(found.digest, [])
            if not group and found.thumb.std() > 1.0:  # flat pictures have no outline to compare
                alike.add(ref, found)
            group.append(ref)
        watch(done, len(source))
    notes = [f"shorter side: {min(sides)} to {max(sides)} pixels, median {statistics.median(sides):g}"] if sides else []
    return Report(
        source.path, source.kind, len(source), faults,
        duplicates=[group for group in same.values() if len(group) > 1],
        nearly=alike.groups(),
        oddities=dict(sorted(odd.items())), classes=_counts(source.labels), empty_classes=_empty_folders(source),
        notes=notes,
    )  # fmt: skip


def _look_at_all(source: Source) -> Iterator[tuple[str, _Seen | ImageError]]:
    def look(ref: str) -> _Seen | ImageError:
        path = source.file_of(ref)
        try:
            picture = read_picture(path, ref, at_least=64)
            return _seen(path.read_bytes(), picture.pixels, picture.oddities)
        except ImageError as error:
            return error
        except OSError as error:
            return ImageError(f"'{ref}' cannot be read: {error.strerror or error}.", "unreadable")

    with ThreadPoolExecutor(READERS) as readers:
        refs = iter(source.refs)
        while piece := list(islice(refs, 64)):  # a piece at a time: a million pictures are not queued at once
            yield from zip(piece, readers.map(look, piece), strict=True)


def _seen(content: bytes, pixels: NDArray[np.uint8], oddities: tuple[str, ...]) -> _Seen:
    small = Image.fromarray(pixels).resize((THUMB + 1, THUMB), Image.Resampling.BOX)
    grey = np.asarray(small.convert("L"), dtype=np.int16)
    outline = np.packbits(grey[:, 1:] > grey[:, :-1]).tobytes()  # a "difference hash": where it gets brighter
    digest = hashlib.blake2b(content, digest_size=16).digest()
    height, width = pixels.shape[:2]
    return _Seen(digest, outline, np.asarray(small, dtype=np.uint8), oddities, (height, width))


class _Alike:
    """Groups of pictures whose outlines differ in at most three bits and whose thumbnails differ little.

    Outlines are compared where one of their four quarters agrees, which three differing bits cannot prevent.
    """

    def __init__(self) -> None:
        self._buckets: dict[tuple[int, bytes], list[tuple[_Seen, list[str]]]] = {}
        self._groups: list[list[str]] = []

    def add(self, ref: str, seen: _Seen) -> None:
        """Put a picture with those like it."""
        places = [(part, seen.outline[2 * part : 2 * part + 2]) for part in range(4)]
        for place in places:
            for first, members in self._buckets.get(place, ()):
                bits = int.from_bytes(first.outline, "big") ^ int.from_bytes(seen.outline, "big")
                if bits.bit_count() <= 3 and np.abs(first.thumb.astype(np.int16) - seen.thumb).mean() <= ALIKE:
                    members.append(ref)
                    return
        group = [ref]
        self._groups.append(group)
        for place in places:
            bucket = self._buckets.setdefault(place, [])
            if len(bucket) < MOST_COMPARED:
                bucket.append((seen, group))

    def groups(self) -> list[list[str]]:
        """Those with more than one picture."""
        return [group for group in self._groups if len(group) > 1]


def _empty_folders(source: Source) -> list[str]:
    """Folders below the pool in which, and below which, no image lies."""
    full: set[str] = set()
    for ref in source.refs:
        folder = os.path.dirname(ref)  # noqa: PTH120
        while folder and folder not in full:
            full.add(folder)
            folder = os.path.dirname(folder)  # noqa: PTH120
    found: list[str] = []
    for folder, inner, files in os.walk(source.path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        name = Path(folder).relative_to(source.path).as_posix()
        if "campaign.db" in files:
            inner.clear()
        elif name != "." and name not in full:
            found.append(name)
            inner.clear()
    return found


def _texts(source: Source, watch: Watch) -> Report:
    same: dict[str, list[str]] = {}
    empty: dict[str, str] = {}
    for done, (item, text) in enumerate(zip(source.ids, source.refs, strict=True), 1):
        stripped = text.strip()
        if not stripped:
            empty[item] = f"item '{item}' has no text. Fill it in, or remove the row."
        else:
            same.setdefault(stripped, []).append(item)
        if done % CHUNK == 0 or done == len(source):
            watch(done, len(source))
    lengths = [len(text) for text in source.refs]
    return Report(
        source.path, source.kind, len(source), {"empty text": empty} if empty else {},
        duplicates=[group for group in same.values() if len(group) > 1], classes=_counts(source.labels),
        unlabelled=_unlabelled(source.labels),
        notes=[f"characters: median {statistics.median(lengths):g}, longest {max(lengths)}"],
    )  # fmt: skip


def _vectors(source: Source, watch: Watch) -> Report:
    from mqnet.data.pools import open_npy, open_parquet

    if source.path.suffix.lower() == ".npy":
        pool = open_npy(source.path)
    else:
        pool = open_parquet(source.path, id_column=source.id_column, vector_column=source.vector_column)
    faults: dict[str, dict[str, str]] = {}
    same: dict[bytes, list[str]] = {}
    for piece, ids in pool.ids.chunks(CHUNK):
        vectors = pool.load(ids).numpy()
        finite: list[bool] = np.isfinite(vectors).all(axis=1).tolist()
        nothing: list[bool] = np.equal(vectors, 0).all(axis=1).tolist()
        for item, good, zero, row in zip(ids, finite, nothing, vectors, strict=True):
            if not good:
                sentence = f"item '{item}' holds NaN or infinity. Repair or drop its row."
                faults.setdefault("not finite", {})[item] = sentence
            elif zero:
                faults.setdefault("all zero", {})[item] = f"item '{item}' is all zeros: it was never encoded."
            else:
                same.setdefault(hashlib.blake2b(row.tobytes(), digest_size=16).digest(), []).append(item)
        watch(piece.stop, len(source))
    notes = [f"{pool.dim} numbers each, {pool.vectors.dtype}"]
    repeated = [group for group in same.values() if len(group) > 1]
    return Report(source.path, source.kind, len(source), faults, duplicates=repeated, notes=notes)


def _counts(labels: Sequence[str] | None) -> dict[str, int]:
    return dict(sorted(Counter(label for label in labels or () if label).items()))


def _unlabelled(labels: Sequence[str] | None) -> int:
    return sum(not label for label in labels) if labels is not None else 0
