"""One line that says how far a long task is and how long it will take; nothing for what is over in two seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType

QUIET_SECONDS = 2.0
EVERY_SECONDS = 10.0
"""Between lines where no terminal redraws them."""


class Told:
    """Call it with how many of how many are done. On a terminal one line is redrawn, else a line comes now and then."""

    def __init__(self, what: str, *, silent: bool = False) -> None:
        self._what, self._silent = what, silent
        self._started = self._shown = time.perf_counter()
        self._terminal = sys.stderr.isatty()
        self._first: tuple[int, float] | None = None
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` items are done."""
        now = time.perf_counter()
        if self._first is None:
            # what was done before this call (a run that goes on) says nothing about speed
            self._first = (done, now)
        wait = 0.2 if self._terminal else EVERY_SECONDS if self._drawn else QUIET_SECONDS
        if self._silent or now - self._started < QUIET_SECONDS or now - self._shown < wait:
            return
        self._shown, self._drawn = now, True
        line = f"{self._what}: {done:,} of {total:,}, {duration(now - self._started)}{self._left(done, total, now)}"
        print(f"\r\x1b[2K{line}" if self._terminal else line, end="" if self._terminal else "\n", file=sys.stderr)
        sys.stderr.flush()

    def _left(self, done: int, total: int, now: float) -> str:
        begun, since = self._first or (done, now)
        if done <= begun or now <= since:
            return ""
        return f", about {duration((total - done) * (now - since) / (done - begun))} left"

    def __enter__(self) -> Told:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn and self._terminal:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


class Phases:
    """Called with what begins, it gives who is told how far that is; each line takes the place of the one before."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._now: Told | None = None

    def __call__(self, what: str) -> Told:
        """A line for what begins."""
        self._end()
        self._now = Told(what, silent=self._silent)
        return self._now

    def _end(self) -> None:
        if self._now is not None:
            self._now.__exit__(None, None, None)

    def __enter__(self) -> Phases:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(0.4), duration(42), duration(150), duration(9000)
    ('1 s', '42 s', '2.5 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 6000:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
