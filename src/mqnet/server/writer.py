"""One thread that writes: answers that arrive together are made durable together, with one wait for the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from mqnet.store.campaign import CampaignStore

T = TypeVar("T")
S = TypeVar("S")
MOST_TOGETHER = 32


@dataclass(frozen=True)
class _Job:
    work: Callable[[], Any]
    looks: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]

    def resolve(self, result: object, error: BaseException | None) -> None:
        """Wake whoever waits, if they still do."""

        def wake() -> None:
            if not self.future.done():
                if error is None:
                    self.future.set_result(result)
                else:
                    self.future.set_exception(error)

        self.loop.call_soon_threadsafe(wake)


class Writer(Generic[S]):
    """Runs pieces of work that write to a store, one after the other, in a thread of its own.

    Concurrent writers would wait for SQLite's lock by sleeping; a queue is fair, and what is queued shares a commit.
    Nobody is told that their work is done before it is durable. `look` reads what has become of the campaign: once,
    at the end, for all whose work shares a commit.
    """

    def __init__(self, store: CampaignStore, look: Callable[[], S]) -> None:
        self._store, self._look = store, look
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="mqnet-writer", daemon=True)
        self._thread.start()

    async def __call__(self, work: Callable[[], T]) -> T:
        """Do this work, which writes to the store, and return its result once it is durable."""
        return (await self._queue(work, looks=False))[0]

    async def and_look(self, work: Callable[[], T]) -> tuple[T, S]:
        """Do this work, and return its result and how the campaign stands after it, once it is durable."""
        return await self._queue(work, looks=True)

    async def _queue(self, work: Callable[[], T], *, looks: bool) -> tuple[T, Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[T, Any]] = loop.create_future()
        self._jobs.put(_Job(work, looks, loop, future))
        return await future

    def close(self) -> None:
        """End the thread after what is queued."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs: list[_Job] = [job]
            last = False
            try:
                while len(jobs) < MOST_TOGETHER:
                    more = self._jobs.get_nowait()
                    if more is None:
                        last = True
                        break
                    jobs.append(more)
            except Empty:
                pass
            self._do(jobs)
            if last:
                return

    def _do(self, jobs: list[_Job]) -> None:
        outcomes: list[tuple[object, BaseException | None]] = []
        seen: S | None = None
        try:
            with self._store.together():
                for job in jobs:
                    try:
                        outcomes.append((job.work(), None))
                    except Exception as error:  # whoever asked for it is told; the others' work goes on
                        outcomes.append((None, error))
                if any(job.looks for job in jobs):
                    seen = self._look()
        except Exception as error:  # nothing was committed
            outcomes = [(None, error)] * len(jobs)
        for job, (result, error) in zip(jobs, outcomes, strict=True):
            job.resolve((result, seen), error)
