"""A run as it goes: a live display on a terminal, plain lines now and then elsewhere, or a JSON object per campaign."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from mqnet.cli.progress import duration
from mqnet.experiment.cells import Cell
from mqnet.experiment.results import Row, read_rows
from mqnet.experiment.run import Progress
from mqnet.experiment.standing import Standing, standing
from mqnet.experiment.stored import RESULTS
from mqnet.loop.progress import Step, step_in

SECONDS_BETWEEN_LINES = 10.0
HEARTBEAT = 60.0
BAR = 60
MOST_SHOWN = 16
"""Running campaigns that have a line of their own."""


def watch(
    events: Iterable[Progress], out: Path, cells: Sequence[Cell], console: Console, as_json: bool
) -> list[Progress]:
    """Show a run while it goes and return the campaigns that failed."""
    look = _Look(out, cells)
    live = console.is_terminal and not as_json
    shown: AbstractContextManager[Any] = nullcontext()
    if live:

        def now() -> Group:
            found = look()
            return picture(found, steps_of(out, (one.cell.digest for one in found.running)))

        shown = Live(get_renderable=now, console=console, refresh_per_second=1, transient=True)
    lines = _Lines(look, quiet=live or as_json)
    failures: list[Progress] = []
    with shown, lines:
        for event in events:
            if event.error is not None:
                failures.append(event)
            if as_json:
                print(json.dumps(_json(event, look())), flush=True)
            else:
                lines.ended(event)
    return failures


class _Look:
    """Where the run stands now; the table of results is read again only when it has changed."""

    def __init__(self, out: Path, cells: Sequence[Cell]) -> None:
        self._out, self._cells = out, cells
        self._rows: list[Row] = []
        self._read: int | None = None
        self._guard = threading.Lock()  # the display's thread looks too

    def __call__(self) -> Standing:
        with self._guard:
            path = self._out / RESULTS
            changed = path.stat().st_mtime_ns if path.is_file() else None
            if changed is not None and changed != self._read:
                self._rows, self._read = read_rows(path), changed
            return standing(self._out, self._cells, self._rows, time.time())


class _Lines:
    """A plain line when campaigns end, and one a minute where they are long."""

    def __init__(self, look: Callable[[], Standing], *, quiet: bool) -> None:
        self._look, self._quiet = look, quiet
        self._started = self._shown = time.monotonic()
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> _Lines:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def ended(self, event: Progress) -> None:
        """A campaign has ended."""
        due = time.monotonic() - self._shown > SECONDS_BETWEEN_LINES
        if not self._quiet and (due or event.done == event.total):
            self._print()

    def _beat(self) -> None:
        while not self._stop.wait(1.0):
            if time.monotonic() - self._shown > HEARTBEAT:
                self._print()

    def _print(self) -> None:
        with self._guard:
            self._shown = time.monotonic()
            print(f"{headline(self._look())}, {self._shown - self._started:.0f} s", flush=True)


def headline(found: Standing) -> str:
    """'12 of 80 campaigns, 1 failed, 2 running, about 3.5 min left, best so far: mqnet (AULC 84.21)'."""
    parts = [f"{found.ended} of {found.total} campaigns"]
    if found.failed:
        parts.append(f"{found.failed} failed")
    if found.running:
        parts.append(f"{len(found.running)} running")
    if found.seconds_left:
        parts.append(f"about {duration(found.seconds_left)} left")
    if found.leader is not None:
        parts.append(f"best so far: {leader_text(found)}")
    return ", ".join(parts)


def leader_text(found: Standing) -> str:
    """'mqnet (AULC 84.21 over 8 settings and seeds)'."""
    if found.leader is None:
        return ""
    where = f"{found.leader.n_blocks} settings and seeds" if found.leader.n_blocks != 1 else "one setting and seed"
    return f"{found.leader.strategy} (AULC {100 * found.leader.aulc:.2f} over {where})"


def steps_of(out: Path, names: Iterable[str]) -> dict[str, Step]:
    """The long step that each of these campaigns is at (a training, a pass over the pool), where it is at one."""
    found = {name: step_in(out / "cells" / name) for name in names}
    return {name: step for name, step in found.items() if step is not None}


def picture(found: Standing, steps: Mapping[str, Step] = MappingProxyType({})) -> Group:
    """The live display: a bar, a line for each running campaign with its long step, who leads."""
    left = f", about {duration(found.seconds_left)} left" if found.seconds_left else ""
    failed = f", {found.failed} failed" if found.failed else ""
    head = Text(f"{found.ended} of {found.total} campaigns{failed}{left}", style="bold")
    full = round(BAR * found.ended / max(1, found.total))
    lines = [head, Text.assemble(("━" * full, "bar.complete"), ("━" * (BAR - full), "bar.back"))]
    lines += [
        Text(
            f"  round {one.round:>2} of {one.rounds}  {one.cell.title}{_at(steps.get(one.cell.digest))}",
            no_wrap=True,
            overflow="ellipsis",
        )
        for one in found.running[:MOST_SHOWN]
    ]
    if len(found.running) > MOST_SHOWN:
        lines.append(Text(f"  and {len(found.running) - MOST_SHOWN} more"))
    if found.leader is not None:
        lines.append(Text(f"best so far: {leader_text(found)}", no_wrap=True, overflow="ellipsis"))
    return Group(*lines)


def _at(step: Step | None) -> str:
    return f"  {step.what}: {step.done / max(1, step.total):.0%}" if step is not None else ""


def best_of(found: Standing) -> dict[str, object] | None:
    """Who leads, for JSON."""
    if found.leader is None:
        return None
    return {"strategy": found.leader.strategy, "aulc": found.leader.aulc, "blocks": found.leader.n_blocks}


def status_lines(found: Mapping[str, Any]) -> list[str]:
    """`mqnet status` of a run, for people."""
    lines = [f"cells: {found['cells']}", f"finished: {found['finished']}", f"failed: {found['failed']}"]
    lines += [f"running: {one['cell']}, round {one['round']} of {one['of']}" for one in found["running"]]
    lines += [f"training: {text}" for text in found.get("training", ())]
    if found["seconds_left"]:
        lines.append(f"left: about {duration(found['seconds_left'])}")
    if found["best"] is not None:
        best = found["best"]
        lines.append(
            f"best so far: {best['strategy']}, AULC {100 * best['aulc']:.2f} ({best['blocks']} settings and seeds)"
        )
    return lines


def _json(event: Progress, found: Standing) -> dict[str, object]:
    return {
        "done": event.done,
        "total": event.total,
        "cell": event.cell.title,
        "seconds": event.seconds,
        "error": None if event.error is None else str(event.error),
        "failed": found.failed,
        "running": len(found.running),
        "seconds_left": found.seconds_left,
        "best": best_of(found),
    }
