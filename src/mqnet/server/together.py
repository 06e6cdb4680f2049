"""One reading for many who ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Together(Generic[T]):
    """Does a piece of reading once for all who ask while the one before is under way.

    It begins after each of them asked: nobody is told what was true before their own answer was taken.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._running: asyncio.Future[T] | None = None
        self._next: asyncio.Future[T] | None = None

    async def __call__(self) -> T:
        """What the reading finds."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._begin(self._running))
        return await asyncio.shield(self._next)

    async def _begin(self, before: asyncio.Future[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        self._running, self._next = self._next, None
        return await asyncio.to_thread(self._work)
