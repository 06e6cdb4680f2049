"""A pool of images or texts to a pool of vectors, in shards: a killed run goes on from what is done."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load, save

from mqnet import __version__
from mqnet.data.sources import Source, open_source
from mqnet.encoders._reading import batches
from mqnet.encoders.base import Encoder, default_encoder, make_encoder
from mqnet.encoders.files import SUFFIXES, Encoding, Vectors, encoding_path, read_sidecar, shard_bytes, write_pool
from mqnet.errors import ConfigError, InputError, PoolError
from mqnet.rng import Key
from mqnet.store.blobs import make_folder, write_durably
from mqnet.store.lock import LoopLock
from mqnet.types import Arrays

SHARD = 1024
"""Items encoded between two writes: what a kill can cost."""
Watch = Callable[[int, int], None]
"""Told how many items of how many are done."""


@dataclass(frozen=True)
class Embedded:
    """What `embed` wrote, and what it left out."""

    path: Path
    encoder: str
    n_items: int
    dim: int
    left_out: Mapping[str, str]
    """Items that could not be read, and why."""
    advice: str
    """A sentence on a better encoder, '' if the best one was taken."""


def embed(
    source: Source | str | Path,
    out: str | Path,
    *,
    encoder: str | None = None,
    options: Mapping[str, object] | None = None,
    skip_unreadable: bool = False,
    watch: Watch | None = None,
) -> Embedded:
    """Encode every item of a source and write a pool: `.parquet` (id, embedding), or `.npy` with ids beside it.

    Without a name the best installed encoder is taken. Finished shards lie in a hidden folder next to `out` until all
    are there, so the same call continues an interrupted one; the file is the same bit for bit. An image that cannot be
    read is an error that names it, or is left out with `skip_unreadable`. Beside the pool, `NAME.encoder.safetensors`
    keeps what `encode_new` needs.
    """
    items = source if isinstance(source, Source) else open_source(source)
    place = Path(out)
    if place.suffix not in SUFFIXES:
        raise ConfigError(f"'{place}' must end in {' or '.join(SUFFIXES)}.")
    name, advice = (encoder, "") if encoder is not None else default_encoder(items.kind)
    encoding = Encoding(name, dict(options or {}))
    made = _fitting(make_encoder(name, encoding.options), items, name)
    digest = _digest(items, encoding, skip_unreadable)
    if place.exists():
        return _there_already(place, digest, name, advice)
    parts = place.with_name(f".{place.name}.{digest[:12]}.parts")
    make_folder(parts)
    lock = LoopLock(parts)
    try:
        encoding = Encoding(name, encoding.options, _fitted(made, items, parts))
        made.restore(encoding.state)
        shards = [slice(start, min(start + SHARD, len(items))) for start in range(0, len(items), SHARD)]
        files = [parts / f"{number:06d}.safetensors" for number in range(len(shards))]
        for shard, file in zip(shards, files, strict=True):
            if not file.exists():
                write_durably(file, _encoded(made, items, shard, skip_unreadable, watch))
            elif watch is not None:
                watch(shard.stop, len(items))
        written = write_pool(place, items, files, encoding, digest)
    finally:
        lock.release()
    shutil.rmtree(parts)
    return Embedded(place, name, written.n_items, written.dim, written.left_out, advice)


def encode_new(
    encoding: Encoding, source: Source, *, skip_unreadable: bool = False, watch: Watch | None = None
) -> tuple[list[str], Vectors, dict[str, str]]:
    """Ids and vectors [n, D] of new items, made as the pool's were; and the items left out, with the reason."""
    made = _fitting(encoding.make(), source, encoding.encoder)
    rows, vectors, left_out = _encode_rows(made, source, range(len(source)), skip_unreadable, watch)
    ids = list(source.ids)
    return [ids[row] for row in rows], vectors, left_out


def embedding_seconds(
    source: Source, encoder: str | None = None, *, without: Collection[str] = ()
) -> tuple[str, float]:
    """The encoder that would be taken, and about how long it would need for the whole source, from a few items."""
    name = encoder if encoder is not None else default_encoder(source.kind)[0]
    made = _fitting(make_encoder(name), source, name)
    some: list[int] = []
    for row, item in enumerate(source.ids):
        if item not in without:
            some.append(row)
        if len(some) == 2 * made.batch:
            break
    made.restore(made.fit(len(some), lambda rows: batches(made, source, [some[i] for i in rows], None), Key(0)))
    seconds = [0.0, 0.0]
    for turn in range(2):  # the first turn loads weights and warms up
        rows = some[turn * made.batch : (turn + 1) * made.batch] or some[: made.batch]
        started = time.perf_counter()
        for batch in batches(made, source, rows, None):
            made.encode(batch)
        seconds[turn] = (time.perf_counter() - started) / len(rows)
    return name, seconds[1] * len(source)


def _fitting(made: Encoder, items: Source, name: str) -> Encoder:
    if made.takes != items.kind:
        raise ConfigError(f"the encoder '{name}' takes {made.takes}s, but '{items.path}' holds {items.kind}s.")
    return made


def _digest(items: Source, encoding: Encoding, skip: bool) -> str:
    """A hash of everything that decides the file: the encoder, the ids, the texts or the image files' lengths."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([encoding.encoder, encoding.options, skip, __version__], sort_keys=True).encode())
    digest.update(items.ids.hashes().tobytes())
    if items.kind == "text":
        for text in items.refs:
            digest.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    else:
        sizes = [_length(items.file_of(ref)) for ref in items.refs]
        digest.update(np.asarray(sizes, dtype=np.int64).tobytes())
    return digest.hexdigest()


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # the reader will say what is wrong with it


def _there_already(place: Path, digest: str, name: str, advice: str) -> Embedded:
    sidecar = encoding_path(place)
    record = read_sidecar(sidecar)[0] if sidecar.is_file() else {}
    if record.get("digest") != digest:
        raise InputError(
            f"'{place}' exists and was made from other items or by another encoder. Remove it, or name another file."
        )
    return Embedded(place, name, record["n_items"], record["dim"], record["left_out"], advice)


def _fitted(made: Encoder, items: Source, parts: Path) -> Arrays:
    file = parts / "fitted.safetensors"
    if not file.exists():
        state = made.fit(len(items), lambda rows: batches(made, items, rows, {}), Key(0).child("embed"))
        write_durably(file, save({name: tensor.numpy() for name, tensor in state.items()}))
    return {name: torch.from_numpy(np.array(array)) for name, array in load(file.read_bytes()).items()}


def _encoded(made: Encoder, items: Source, shard: slice, skip: bool, watch: Watch | None) -> bytes:
    def here(done: int, total: int) -> None:
        if watch is not None:
            watch(shard.start + done, len(items))

    rows, vectors, left_out = _encode_rows(made, items, range(shard.start, shard.stop), skip, here)
    return shard_bytes(rows, vectors, left_out)


def _encode_rows(
    made: Encoder, items: Source, rows: Sequence[int], skip: bool, watch: Watch | None
) -> tuple[list[int], Vectors, dict[str, str]]:
    left_out: dict[str, str] = {}
    found: list[Vectors] = []
    done = 0
    for batch in batches(made, items, rows, left_out if skip else None):
        vectors = made.encode(batch).numpy()
        with np.errstate(over="ignore"):
            half = vectors.astype(np.float16)
        found.append(half)
        done += len(half)
        if watch is not None:
            watch(done + len(left_out), len(rows))
    kept = [row for row in rows if items.refs[row] not in left_out] if left_out else list(rows)
    vectors = np.concatenate(found) if found else np.zeros((0, 0), dtype=np.float16)
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1)) if len(vectors) else []
    if len(broken):
        raise PoolError(
            f"item '{items.ids[kept[int(broken[0])]]}' has a vector that is no finite number in float16. Look at it."
        )
    return kept, vectors, left_out
