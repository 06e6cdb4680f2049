"""How far the coders of a run are, told while their trainings go on in other processes."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from mqnet.loop.coders import Progress, in_training

SECONDS_BETWEEN = 30.0


def said(progress: Progress) -> str:
    """One training in words."""
    left = progress.seconds_left
    eta = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
    return (
        f"{progress.kind} coder, seed {progress.seed}: step {progress.done:,} of {progress.total:,}, about {eta} left"
    )


@contextmanager
def telling(root: Path, console: Console | None) -> Generator[None]:
    """Inside, a line for each coder in training now and then; none without a console."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(SECONDS_BETWEEN):
            for progress in in_training(root):
                assert console is not None
                console.print(said(progress), highlight=False, soft_wrap=True)

    thread = threading.Thread(target=tell, name="mqnet-coders", daemon=True)
    if console is not None:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if console is not None:
            thread.join()
