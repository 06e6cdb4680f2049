"""Deaths of the process, staged: at a chosen write to the store, before it, half-way through it or just after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from sqlalchemy import event

from mqnet.loop.learner import ActiveLearner
from mqnet.store import schema
from mqnet.store.blobs import FolderBlobs, _encode
from mqnet.store.campaign import CampaignStore

MOMENTS = ("before", "within", "after")


class Died(BaseException):
    """Nobody catches it, as nobody catches SIGKILL."""


@dataclass
class Death:
    """Counts the writes to the store and strikes at number `at`; `n_writes` tells how many there were."""

    at: int | None = None
    moment: str = "before"
    n_writes: int = 0

    def _strikes(self, moment: str) -> None:
        if self.n_writes == self.at and self.moment == moment:
            raise Died

    @contextmanager
    def staged(self) -> Iterator[Death]:
        write, put = CampaignStore._write, FolderBlobs.put
        death = self

        @contextmanager
        def dying_write(store):
            death._strikes("before")
            with write(store) as connection:
                yield connection
                death._strikes("within")  # rolled back
            death._strikes("after")
            death.n_writes += 1

        def dying_put(blobs, arrays):
            death._strikes("before")
            if death.n_writes == death.at and death.moment == "within":
                path = blobs._path(_encode(arrays)[0])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_name(f".{path.name}.1.part").write_bytes(b"half of it")
                raise Died
            digest = put(blobs, arrays)
            death._strikes("after")
            death.n_writes += 1
            return digest

        with ExitStack() as stack:
            stack.enter_context(patch.object(CampaignStore, "_write", dying_write))
            stack.enter_context(patch.object(FolderBlobs, "put", dying_put))
            yield self


@contextmanager
def careless_disk() -> Iterator[None]:
    """No waiting for the disk: staged deaths end no operating system, so what was written is there without fsync."""
    connect = schema.connect

    def hasty(path):
        engine = connect(path)
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        return engine

    with patch.object(schema, "connect", hasty), patch("mqnet.store.blobs.os.fsync", lambda _: None):
        yield


def abandon(learner: ActiveLearner) -> None:
    """What the operating system does for a dead process: its lock and its connections are gone, nothing is saved."""
    learner.close()
