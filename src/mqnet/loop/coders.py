"""Coders on disk: trained once for a pool, options and a seed, by whoever comes first, for all who need them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mqnet.errors import StoreError
from mqnet.loop.checkpoints import FolderCheckpoints
from mqnet.models.checkpoints import Saver
from mqnet.models.contrastive.coder import Coder, restored
from mqnet.models.contrastive.config import CoderConfig, Kind
from mqnet.models.contrastive.train import train_coder
from mqnet.models.devices import Engine
from mqnet.models.encode import Watcher
from mqnet.numerics.threads import one_thread
from mqnet.rng import Key
from mqnet.store.blobs import Blobs, FolderBlobs, disk_error, make_folder, write_durably
from mqnet.types import Arrays, Pool

FORMAT = 1
"""Part of every coder's name: raised when the same options give another coder."""

DONE, PROGRESS, TRAINING, LOCK = "coder.json", "progress.json", "training", "coder.lock"
ENCODED_AT_ONCE = 2048
TELL_SECONDS = 2.0


@dataclass(frozen=True)
class CoderJob:
    """What a coder is determined by: its kind and options, the items it learns from, the seed."""

    kind: Kind
    config: CoderConfig
    pool: str
    """The pool's fingerprint."""
    seed: int

    @property
    def digest(self) -> str:
        """The coder's name."""
        defining = {"format": FORMAT, "kind": self.kind, "pool": self.pool, "seed": self.seed}
        text = json.dumps({**defining, "options": self.config.model_dump()}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()

    @property
    def key(self) -> Key:
        """Its randomness."""
        return Key(self.seed).child("coder", self.kind)


@dataclass(frozen=True)
class Space:
    """A finished coder, and its representation of every item of the pool, row i for item i in the order of the ids."""

    rows: Tensor
    coder: Coder


class MemoryShelf:
    """Coders of a campaign without a folder: they live as long as it does."""

    def __init__(self) -> None:
        self._spaces: dict[str, Space] = {}

    def space(self, job: CoderJob, pool: Pool, watch: Watcher | None = None) -> Space:
        """The space of a job, trained when it is first asked for."""
        if job.digest not in self._spaces:
            coder = train_coder(pool, job.kind, job.config, job.key, watch=watch)
            self._spaces[job.digest] = Space(represent(coder, pool), coder)
        return self._spaces[job.digest]


@dataclass
class FolderShelf:
    """Coders in a folder that processes share: `<name>/` holds one, `arrays/` their weights and representations."""

    root: Path
    _spaces: dict[str, Space] = field(default_factory=dict[str, Space])

    def space(self, job: CoderJob, pool: Pool, watch: Watcher | None = None) -> Space:
        """The space of a job: read if it is there, else trained, or waited for while another process trains it.

        A training that was killed goes on from its last checkpoint, whoever goes on with it.
        """
        if job.digest not in self._spaces:
            if not self.finished(job):
                self._train(job, pool, watch)
            self._spaces[job.digest] = self._read(job, pool)
        return self._spaces[job.digest]

    def finished(self, job: CoderJob) -> bool:
        """Whether the coder is there."""
        return (self._folder(job) / DONE).is_file()

    def _folder(self, job: CoderJob) -> Path:
        return self.root / job.digest

    @property
    def _arrays(self) -> Blobs:
        return FolderBlobs(self.root / "arrays")

    def _train(self, job: CoderJob, pool: Pool, watch: Watcher | None) -> None:
        folder = self._folder(job)
        make_folder(folder)
        with waiting_lock(folder / LOCK):
            if self.finished(job):  # another process had the lock, and has done it
                return
            checkpoints = FolderCheckpoints(folder / TRAINING)
            teller = _Teller(folder / PROGRESS, job, watch)
            started = time.monotonic()
            # what began on another engine would not end in the same bits: it is trained anew
            engine = Engine.choose(job.config.device, job.config.precision)
            saver = Saver(checkpoints, f"{job.digest}-{engine.label.replace(' ', '-')}")
            coder = train_coder(pool, job.kind, job.config, job.key, saver=saver, watch=teller)
            written = {
                "kind": job.kind,
                "options": job.config.model_dump(),
                "pool": job.pool,
                "seed": job.seed,
                "coder": self._arrays.put(_plain(coder.state())),
                "representation": self._arrays.put({"rows": represent(coder, pool).numpy()}),
                "seconds": round(time.monotonic() - started, 1),
            }
            write_durably(folder / DONE, json.dumps(written, indent=1).encode())
            checkpoints.clear()
            (folder / PROGRESS).unlink(missing_ok=True)

    def _read(self, job: CoderJob, pool: Pool) -> Space:
        path = self._folder(job) / DONE
        try:
            written: dict[str, Any] = json.loads(path.read_bytes())
            rows, state = (self._arrays.get(str(written[name])) for name in ("representation", "coder"))
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(
                f"'{path}' cannot be read: {error}. Delete its folder to train the coder again."
            ) from error
        size = int(pool.load(pool.ids.take(slice(0, 1))).shape[-1])
        device = Engine.choose(job.config.device, job.config.precision).device
        coder = restored(
            {name: torch.from_numpy(np.array(array)) for name, array in state.items()}, job.kind, job.config, size,
            device,
        )  # fmt: skip
        return Space(torch.from_numpy(np.array(rows["rows"])), coder)


Shelf = MemoryShelf | FolderShelf


def represent(coder: Coder, pool: Pool) -> Tensor:
    """The representation [N, D] of every item of a pool, in the order of the ids."""
    with one_thread():
        pieces = [coder.encode(pool.load(ids)) for _, ids in pool.ids.sorted().chunks(ENCODED_AT_ONCE)]
    return torch.cat(pieces)


@contextmanager
def waiting_lock(path: Path) -> Generator[None]:
    """Held by one process at a time; the others wait, and can be stopped while they do. A dead holder holds nothing."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise disk_error(path, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # a signal ends the wait
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Progress:
    """How far the training of a coder is."""

    kind: str
    seed: int
    done: int
    total: int
    seconds_left: float


def in_training(root: Path) -> list[Progress]:
    """The coders of a shared folder that a process is training now, as far as they last said."""
    found: list[Progress] = []
    for path in sorted(root.glob(f"*/{PROGRESS}")):
        try:
            if _is_held(path.with_name(LOCK)):  # what a killed training said last is no news
                found.append(Progress(**json.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError):  # it has just ended, or is another version's
            continue
    return found


def _is_held(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


class _Teller:
    """Says now and then in a file how far a training is, for whoever wants to know."""

    def __init__(self, path: Path, job: CoderJob, watch: Watcher | None) -> None:
        self._path, self._job, self._watch = path, job, watch
        self._first: tuple[int, float] | None = None
        self._told = 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = (done, now)
        if now - self._told > TELL_SECONDS:
            self._told = now
            steps, seconds = done - self._first[0], now - self._first[1]
            left = (total - done) * seconds / steps if steps else 0.0
            said = {"kind": self._job.kind, "seed": self._job.seed, "done": done, "total": total}
            part = self._path.with_name(f".{self._path.name}.part")
            with suppress(OSError):  # a full disk: the next checkpoint meets it and says so
                part.write_text(json.dumps({**said, "seconds_left": round(left, 1)}))
                part.replace(self._path)
        if self._watch is not None:
            self._watch(done, total)


def _plain(arrays: Arrays) -> dict[str, NDArray[np.generic]]:
    return {name: tensor.numpy() for name, tensor in arrays.items()}
