"""The vectors of a project, in its folder: copied, or made by an encoder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mqnet.data.pools import ArrayPool, open_npy, open_parquet
from mqnet.data.sources import Source, open_source
from mqnet.encoders.base import default_encoder, make_encoder
from mqnet.encoders.embed import embed, encode_new
from mqnet.encoders.files import read_encoding
from mqnet.errors import ConfigError, InputError
from mqnet.ids import CHUNK, RowNames
from mqnet.models.encode import Watcher
from mqnet.store.blobs import disk_error, sync_folder, write_durably
from mqnet.store.project import Project

Vectors = Callable[[Path], ArrayPool]
"""Writes the vectors of a source to the file named, with its ids beside it, and opens them."""


def source_vectors(source: Source) -> ArrayPool:
    """The pool of a source of vectors."""
    if source.path.suffix.lower() == ".npy":
        return open_npy(source.path)
    return open_parquet(source.path, id_column=source.id_column, vector_column=source.vector_column)


def copy_vectors(pool: ArrayPool, place: Path, watch: Watcher | None = None) -> ArrayPool:
    """Write the vectors to a `.npy` file with the ids beside it, a chunk at a time, and open it."""
    names = place.with_suffix(".ids.json")
    if isinstance(pool.ids.names, RowNames):
        names.unlink(missing_ok=True)
    else:
        write_durably(names, json.dumps(list(pool.ids), ensure_ascii=False).encode())
    temporary = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        shape = (len(pool.ids), pool.dim)
        copy = np.lib.format.open_memmap(temporary, mode="w+", dtype=pool.vectors.dtype, shape=shape)
        for piece, some in pool.ids.chunks(CHUNK):
            copy[piece] = pool.load(some).numpy()
            if watch is not None:
                watch(piece.stop, len(pool.ids))
        copy.flush()
        del copy
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(place)
        sync_folder(place.parent)
    except OSError as error:
        raise disk_error(place, error) from error
    finally:
        temporary.unlink(missing_ok=True)
    return open_npy(place)


def vectors_of(
    source: Source, encoder: str | None, watch: Watcher | None = None, *, skip_unreadable: bool = False
) -> tuple[str | None, Vectors]:
    """The encoder's name (None for vectors, which need none) and what writes the vectors of a source to a file."""
    if source.kind == "vector":
        if encoder is not None:
            raise ConfigError(f"'{source.path}' holds vectors already: leave --encoder out.")
        return None, lambda place: copy_vectors(source_vectors(source), place, watch)
    name = encoder or default_encoder(source.kind)[0]
    make_encoder(name)  # what is missing is said now

    def write(place: Path) -> ArrayPool:
        try:
            embed(source, place, encoder=name, skip_unreadable=skip_unreadable, watch=watch)
        except InputError:
            if not place.exists():
                raise
            place.unlink()  # of an earlier attempt with another encoder, or before the items changed
            embed(source, place, encoder=name, skip_unreadable=skip_unreadable, watch=watch)
        return open_npy(place)

    return name, write


def name_vectors(place: Path, classes: Sequence[str]) -> NDArray[np.float32]:
    """The vectors [K, D] of class names, by the encoder that made the pool of texts at `place`."""
    encoding = read_encoding(place)
    made = encoding.make()
    if made.takes != "text":
        raise ConfigError(
            f"the encoder '{encoding.encoder}' takes {made.takes}s: class names cannot be embedded by it."
        )
    return made.encode(list(classes)).numpy()


def new_vectors(
    folder: Path, settings: Project, items: Path, text_column: str | None, watch: Watcher | None = None
) -> ArrayPool:
    """The vectors of items that are not in the pool, by the project's own encoder."""
    source = open_source(items, text_column=text_column)
    if source.kind != settings.kind:
        raise ConfigError(f"'{items}' holds {source.kind}s, the campaign's items are {settings.kind}s.")
    if source.kind == "vector":
        return source_vectors(source)
    ids, vectors, _ = encode_new(read_encoding(folder / settings.vectors), source, watch=watch)
    return ArrayPool(vectors, ids, source=f"'{items}'")
