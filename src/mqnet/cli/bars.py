"""One bar of progress with an ETA on a terminal, plain lines now and then elsewhere, nothing beside JSON."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0


class Bar:
    """Shown from the first step on; `watch` takes its steps."""

    def __init__(self, what: str, silent: bool = False) -> None:
        console = Console(stderr=True)
        self._what, self._lines = what, not silent and not console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"),
            TimeRemainingColumn(), console=console, transient=True, disable=silent or not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task(what, total=None)
        self._began = self._shown = time.monotonic()

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def watch(self, done: int, total: int) -> None:
        """`done` of `total` steps are taken."""
        self._bar.update(self._task, completed=done, total=total)
        now = time.monotonic()
        if self._lines and done < total and now - self._shown > SECONDS_BETWEEN_LINES:
            self._shown = now
            left = (now - self._began) / max(done, 1) * (total - done)
            print(f"{self._what}: {done} of {total}, about {left:.0f} s left", file=sys.stderr, flush=True)
