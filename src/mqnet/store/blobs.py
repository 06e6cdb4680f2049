"""Arrays by content: each set of named arrays is one safetensors file called by the hash of its bytes."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from mqnet.errors import StoreError

NamedArrays = Mapping[str, NDArray[np.generic]]


class Blobs(Protocol):
    """Where arrays are kept."""

    def put(self, arrays: NamedArrays) -> str:
        """Keep the arrays and return their digest; on return they are durable."""
        ...

    def get(self, digest: str) -> dict[str, NDArray[np.generic]]:
        """The arrays of a digest, checked against it."""
        ...


def _encode(arrays: NamedArrays) -> tuple[str, bytes]:
    # contiguous copies: safetensors writes the buffer as it lies, whatever the strides say. Not `ascontiguousarray`,
    # which gives a scalar a dimension
    encoded = save({name: np.asarray(arrays[name], order="C") for name in sorted(arrays)})
    return hashlib.blake2b(encoded, digest_size=20).hexdigest(), encoded


def digest_of(arrays: NamedArrays) -> str:
    """The digest under which these arrays would be kept."""
    return _encode(arrays)[0]


class MemoryBlobs:
    """Arrays that live as long as the process."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def put(self, arrays: NamedArrays) -> str:
        """Keep the arrays and return their digest."""
        digest, encoded = _encode(arrays)
        self._files[digest] = encoded
        return digest

    def get(self, digest: str) -> dict[str, NDArray[np.generic]]:
        """The arrays of a digest."""
        return load(self._files[digest])


class FolderBlobs:
    """Arrays in a folder: `ab/abcdef….safetensors`. A file appears under its name only when it is whole and durable."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _path(self, digest: str) -> Path:
        return self.root / digest[:2] / f"{digest}.safetensors"

    def put(self, arrays: NamedArrays) -> str:
        """Write the arrays and return their digest; writing what is there already is free."""
        digest, encoded = _encode(arrays)
        path = self._path(digest)
        if not path.exists():
            write_durably(path, encoded)
        return digest

    def get(self, digest: str) -> dict[str, NDArray[np.generic]]:
        """The arrays of a digest; a missing or altered file is an error that names it."""
        path = self._path(digest)
        try:
            encoded = path.read_bytes()
        except FileNotFoundError as error:
            raise StoreError(f"the array file '{path}' is missing. Copy the whole campaign folder again.") from error
        if hashlib.blake2b(encoded, digest_size=20).hexdigest() != digest:
            raise StoreError(f"the array file '{path}' is damaged. Restore it from a copy of the campaign folder.")
        return load(encoded)


def write_durably(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file so that a reader sees nothing or all of it, also after a crash: temporary file, fsync, rename.

    `mode` is who may read it (less the process's mask), from its first byte on.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise disk_error(path, error) from error


def disk_error(path: Path, error: OSError) -> StoreError:
    """The error to show when the file system refuses a write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreError(
            f"the disk is full: '{path}' was not written. Free some space and start again; nothing is lost."
        )
    return StoreError(f"'{path}' could not be written: {error.strerror or error}.")


def make_folder(folder: Path) -> None:
    """Make a folder if it is not there; a refusal of the file system is an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
