"""Beside the bar of a run's campaigns, one for each long step that one of its processes is at."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from rich.progress import Progress, TaskID

from mqnet.loop.progress import Step, step_in

LOOK_SECONDS = 0.5

T = TypeVar("T")


def with_steps(events: Iterable[T], bar: Progress, out: Path) -> Iterator[T]:
    """The events, while a thread keeps the bars of what the run's campaigns say in their folders."""
    over, shown = threading.Event(), Shown(bar)

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            shown.update(steps_of(out))
        shown.update({})

    thread = threading.Thread(target=look, name="mqnet-steps", daemon=True)
    thread.start()
    try:
        yield from events
    finally:
        over.set()
        thread.join()


def steps_of(out: Path) -> dict[str, Step]:
    """The step of every campaign of a run that is at a long one, by its folder."""
    found = {path.name: step_in(path) for path in sorted(out.glob("cells/*"))}
    return {name: step for name, step in found.items() if step is not None}


class Shown:
    """Bars for steps: there as long as the step, gone when it is over."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def update(self, steps: dict[str, Step]) -> None:
        """Show these steps and no others."""
        wanted = {(name, step.what): step for name, step in steps.items()}
        for key in [key for key in self._tasks if key not in wanted]:
            self._bar.remove_task(self._tasks.pop(key))
        for key, step in wanted.items():
            if key not in self._tasks:
                self._tasks[key] = self._bar.add_task(f"  {step.what}", total=step.total, completed=step.done)
            self._bar.update(self._tasks[key], completed=step.done, total=step.total)
