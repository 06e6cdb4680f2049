"""Pools of image files: decoded when first looked at, once, into a file that all processes map."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mqnet.data.archives import cache_folder
from mqnet.data.decode import read_picture, square
from mqnet.data.pools import content_hash, rows_at_once
from mqnet.data.sources import image_file
from mqnet.errors import StoreError
from mqnet.ids import ItemIds, RowNames, Rows
from mqnet.rng import Key

READERS = 4
PIECE = 256
"""Images decoded between two writes."""


class FilePool:
    """Image files as squares uint8 [N, 3, S, S]; an unreadable file is an error that names it.

    Items are called by row numbers: a path may tell the class. `crop` cuts a random square out of each first, the same
    one every time, as junk from elsewhere is prepared (METHOD 5).
    """

    def __init__(
        self,
        root: Path,
        refs: Sequence[str],
        size: int,
        *,
        crop: bool = False,
        ids: ItemIds | None = None,
        decoded: _Decoded | None = None,
    ) -> None:
        self.source = f"the images of '{root}'"
        self.root, self.refs, self.size, self.crop = root, refs, size, crop
        self._decoded = decoded or _Decoded(root, refs, size, crop)
        self._own = ItemIds(RowNames(len(refs)) if ids is None else ids.names)
        self.ids = self._own if ids is None else ids

    def load(self, ids: ItemIds) -> Tensor:
        """The images uint8 [n, 3, S, S] of these items."""
        return torch.from_numpy(self._decoded.rows(ids.rows_in(self._own)))

    def subset(self, ids: ItemIds) -> FilePool:
        """The same files, of these items only; what is decoded is shared."""
        return FilePool(self.root, self.refs, self.size, crop=self.crop, ids=ids, decoded=self._decoded)

    def fingerprint(self) -> str:
        """A hash over ids and pixels: every file is decoded."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        chunk = rows_at_once(3 * self.size**2)
        return content_hash(f"uint8 {'x'.join(['3', *[str(self.size)] * 2])}", self.ids, self.load, chunk=chunk)

    def signature(self) -> str:
        """A hash over the files' names and lengths, the images' size, and which of them are in the pool."""
        digest = hashlib.blake2b(self._decoded.signature, digest_size=16)
        digest.update(np.ascontiguousarray(self.ids.rows_in(self._own)).data)
        return digest.hexdigest()


class _Decoded:
    """Pixels of all files in one sparse file of the cache, a row each, and a hash of every row that is there.

    A row counts only if its hash fits, so that a kill or a crash between the two writes costs one decoding and never
    shows half an image. Any number of processes may fill it: they write the same.
    """

    def __init__(self, root: Path, refs: Sequence[str], size: int, crop: bool) -> None:
        self._root, self._refs, self._size, self._crop = root, refs, size, crop

    @cached_property
    def _stats(self) -> NDArray[np.int64]:
        """Length and time of change of every file [N, 2]; a missing file is -1: decoding will say so."""
        out = np.full((len(self._refs), 2), -1, dtype=np.int64)
        for row, ref in enumerate(self._refs):
            try:
                stat = os.stat(image_file(self._root, ref))  # noqa: PTH116  # a million of them
            except OSError:
                continue
            out[row] = stat.st_size, stat.st_mtime_ns
        return out

    @cached_property
    def signature(self) -> bytes:
        """Of names, lengths, size and crop: the same after the folder was copied elsewhere."""
        digest = hashlib.blake2b(f"{self._size} {self._crop}".encode(), digest_size=16)
        digest.update("\x00".join(self._refs).encode())
        digest.update(np.ascontiguousarray(self._stats[:, 0]).data)
        return digest.digest()

    @cached_property
    def _files(self) -> tuple[int, NDArray[np.uint8], int, NDArray[np.uint64]]:
        """The pixels' file and its mapped view, and the hashes'."""
        name = hashlib.blake2b(self.signature + self._stats.tobytes(), digest_size=12).hexdigest()
        folder = cache_folder() / "images"
        n, width = len(self._refs), 3 * self._size**2
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handles: list[int] = []
            for kind, n_bytes in (("pixels", n * width), ("hashes", n * 8)):
                handle = os.open(folder / f"{name}.{kind}", os.O_RDWR | os.O_CREAT, 0o644)
                if os.fstat(handle).st_size != n_bytes:
                    os.ftruncate(handle, n_bytes)
                handles.append(handle)
            maps = [mmap.mmap(handle, 0, prot=mmap.PROT_READ) for handle in handles]
        except OSError as error:
            raise _cache_error(folder, error) from error
        pixels = np.frombuffer(maps[0], dtype=np.uint8).reshape(n, 3, self._size, self._size)
        return handles[0], pixels, handles[1], np.frombuffer(maps[1], dtype=np.uint64)

    @cached_property
    def _seen(self) -> NDArray[np.bool_]:
        """Rows whose hash this process has found to fit."""
        return np.zeros(len(self._refs), dtype=np.bool_)

    def rows(self, rows: Rows) -> NDArray[np.uint8]:
        """A copy of these rows, decoding what is not there yet."""
        if not len(rows):
            return np.zeros((0, 3, self._size, self._size), dtype=np.uint8)
        fresh = rows[~self._seen[rows]]
        if len(fresh):
            self._fill(np.unique(fresh))
        return np.array(self._files[1][rows])

    def _fill(self, rows: Rows) -> None:
        pixel_file, pixels, hash_file, hashes = self._files
        missing = [row for row in rows.tolist() if not int(hashes[row]) or int(hashes[row]) != _hash(pixels[row])]
        width = 3 * self._size**2
        with ThreadPoolExecutor(READERS) as readers:
            for start in range(0, len(missing), PIECE):
                piece = missing[start : start + PIECE]
                for row, picture in zip(piece, readers.map(self._decode, piece), strict=True):
                    try:
                        # written, not stored through the map: a full disk is then an error, not the end of the process
                        os.pwrite(pixel_file, picture.data, row * width)
                        os.pwrite(hash_file, np.uint64(_hash(picture)).tobytes(), row * 8)
                    except OSError as error:
                        raise _cache_error(cache_folder(), error) from error
        self._seen[rows] = True

    def _decode(self, row: int) -> NDArray[np.uint8]:
        ref = self._refs[row]
        picture = read_picture(image_file(self._root, ref), ref, at_least=self._size)
        return square(picture.pixels, self._size, Key(0).child("crop", ref) if self._crop else None)


def _hash(picture: NDArray[np.uint8]) -> int:
    # never 0, which stands for a row that is not there
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(picture).data, digest_size=8).digest(), "little") | 1


def _cache_error(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"decoded images cannot be kept in '{folder}': {error.strerror or error}. MQNET_CACHE names another folder."
    )
