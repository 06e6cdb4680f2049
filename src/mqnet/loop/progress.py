"""How far a long piece of work is, in the campaign's folder: for whoever waits for it in another process."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mqnet.models.encode import Watcher

Watch = Callable[[str], Watcher]
"""Told what begins ("training round 3"), it gives who is to be told how far that is."""

FILE = "progress.json"
QUIET_SECONDS = 2.0
EVERY_SECONDS = 0.5
STALE_SECONDS = 60.0


@dataclass(frozen=True)
class Step:
    """`done` of `total` after so many seconds of what is being done."""

    what: str
    done: int
    total: int
    seconds: float


class Noted:
    """Keeps a step in a file, from two seconds on; nothing there is durable, and nothing depends on it."""

    def __init__(self, folder: Path, what: str) -> None:
        self._path, self._what = folder / FILE, what
        self._began = self._noted = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` are done."""
        now = time.monotonic()
        if now - self._began < QUIET_SECONDS or now - self._noted < EVERY_SECONDS:
            return
        self._noted = now
        temporary = self._path.with_name(f".{FILE}.part")
        with contextlib.suppress(OSError):  # a full disk: the work itself meets it and says so
            temporary.write_text(json.dumps(asdict(Step(self._what, done, total, now - self._began))))
            temporary.replace(self._path)


@contextmanager
def watching(folder: Path | None, watch: Watch | None, what: str) -> Generator[Watcher | None]:
    """Who is told inside: the one `watch` gives, and the file of the folder, which is gone afterwards."""
    told = [watch(what)] if watch is not None else []
    if folder is not None:
        told.append(Noted(folder, what))

    def tell(done: int, total: int) -> None:
        for one in told:
            one(done, total)

    try:
        yield tell if told else None
    finally:
        if folder is not None:
            with contextlib.suppress(OSError):
                (folder / FILE).unlink(missing_ok=True)


def step_in(folder: Path) -> Step | None:
    """What a campaign's folder says is being done, if it said so lately: a killed process takes nothing back."""
    path = folder / FILE
    try:
        if time.time() - path.stat().st_mtime > STALE_SECONDS:
            return None
        return Step(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
