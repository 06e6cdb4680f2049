"""The files `mqnet embed` writes: a pool of vectors, and beside it how they were made."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from mqnet import __version__
from mqnet.data.sources import Source
from mqnet.encoders.base import Encoder, make_encoder
from mqnet.errors import InputError, PoolError
from mqnet.store.blobs import disk_error, sync_folder, write_durably
from mqnet.types import Arrays

SUFFIXES = (".parquet", ".npy")
Vectors = NDArray[np.float16]


@dataclass(frozen=True)
class Encoding:
    """How a pool was made: encoder, options and what the encoder learned. New items are encoded by the same."""

    encoder: str
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    state: Arrays = field(default_factory=dict[str, torch.Tensor], repr=False)

    def make(self) -> Encoder:
        """The encoder, ready."""
        made = make_encoder(self.encoder, self.options)
        made.restore(self.state)
        return made


def encoding_path(pool: Path) -> Path:
    """Where a pool's encoding lies: `photos.parquet` has `photos.encoder.safetensors`."""
    return pool.with_suffix(".encoder.safetensors")


def read_encoding(pool: str | Path) -> Encoding:
    """How a pool of vectors was made; a pool that `embed` did not write is an error."""
    path = encoding_path(Path(pool))
    record, state = read_sidecar(path)
    return Encoding(record["encoder"], record["options"], state)


def read_sidecar(path: Path) -> tuple[dict[str, Any], Arrays]:
    """What the file beside a pool says, and the encoder's state."""
    if not path.is_file():
        raise InputError(f"'{path}' is missing: it tells how the pool was made. `mqnet embed` writes it.")
    try:
        with safe_open(path, framework="pt") as file:  # pyright: ignore[reportUnknownVariableType]
            metadata: dict[str, str] = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(metadata["mqnet"]), state
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise InputError(f"'{path}' is not what `mqnet embed` writes. Embed the pool again.") from error


@dataclass(frozen=True)
class Written:
    """How large the pool became."""

    n_items: int
    dim: int
    left_out: dict[str, str]


def shard_bytes(rows: Sequence[int], vectors: Vectors, left_out: Mapping[str, str]) -> bytes:
    """A shard: places in the source, their vectors, and what was left out."""
    reasons = np.frombuffer(json.dumps(left_out).encode(), dtype=np.uint8)
    return save({"rows": np.asarray(rows, dtype=np.int64), "vectors": vectors, "left_out": reasons})


def write_pool(place: Path, items: Source, shards: Sequence[Path], encoding: Encoding, digest: str) -> Written:
    """The pool from its shards; it appears under its name last, when everything beside it is there."""
    rows: list[int] = []
    left_out: dict[str, str] = {}
    dim = 0
    for file in shards:
        shard = load(file.read_bytes())
        rows += shard["rows"].tolist()
        left_out |= json.loads(shard["left_out"].tobytes())
        dim = max(dim, shard["vectors"].shape[1])
    if not rows:
        raise PoolError(f"no item of '{items.path}' could be read. `mqnet doctor` says why.")
    ids = list(items.ids.take(np.asarray(rows)))
    record = {
        "encoder": encoding.encoder, "options": dict(encoding.options), "kind": items.kind, "digest": digest,
        "n_items": len(rows), "dim": dim, "left_out": left_out, "version": __version__,
    }  # fmt: skip
    state = {name: tensor.numpy() for name, tensor in encoding.state.items()}
    write_durably(encoding_path(place), save(state, metadata={"mqnet": json.dumps(record, sort_keys=True)}))
    if place.suffix == ".npy":
        write_durably(place.with_suffix(".ids.json"), json.dumps(ids, ensure_ascii=False).encode())
    # one shard in memory at a time: a pool may be larger than that
    vectors = (part for file in shards if len(part := load(file.read_bytes())["vectors"]))
    with _whole(place) as temporary:
        (_write_npy if place.suffix == ".npy" else _write_parquet)(temporary, ids, vectors, dim)
    return Written(len(rows), dim, left_out)


def _write_npy(path: Path, ids: Sequence[str], vectors: Iterator[Vectors], dim: int) -> None:
    header = {"descr": "<f2", "fortran_order": False, "shape": (len(ids), dim)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in vectors:
            file.write(np.ascontiguousarray(part).data)


def _write_parquet(path: Path, ids: Sequence[str], vectors: Iterator[Vectors], dim: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.string()), ("embedding", pa.list_(pa.float16()))])
    with pq.ParquetWriter(path, schema) as writer:
        start = 0
        for part in vectors:
            flat = pa.array(np.ascontiguousarray(part).reshape(-1), type=pa.float16())
            lists = pa.ListArray.from_arrays(np.arange(len(part) + 1, dtype=np.int32) * dim, flat)
            names = pa.array(ids[start : start + len(part)], type=pa.string())
            writer.write_table(pa.table([names, lists], schema=schema))
            start += len(part)


@contextmanager
def _whole(path: Path) -> Generator[Path]:
    """A temporary place whose file takes its name when it is whole and durable."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise disk_error(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)
