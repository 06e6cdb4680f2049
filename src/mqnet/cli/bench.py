"""`mqnet bench`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from mqnet.experiment.baseline import Change, compare, read_baseline
from mqnet.experiment.bench import Clock, Measured, bench, default_jobs, machine
from mqnet.store.blobs import write_durably

SIZES, CLASSES = (10_000, 50_000), (4,)


def run(
    sizes: Sequence[int],
    classes: Sequence[int],
    names: Sequence[str],
    n_picks: int,
    n_repeats: int,
    clock: Clock,
    out: Path | None,
    baseline: Path | None,
    tolerance: float,
) -> None:
    """Measure strategies, print a table row by row, keep the figures if asked for, and compare them with earlier ones.

    Exit status 1 where a strategy failed or became slower or larger than the baseline says.
    """
    jobs = default_jobs(sizes or SIZES, classes or CLASSES, names, n_picks)
    earlier = None if baseline is None else read_baseline(baseline)  # before the minutes that measuring takes
    console = Console()
    found: list[Measured] = []
    table = Table(box=None, pad_edge=False)
    for name in ("strategy", "items", "classes", "seconds", "peak MB", "limit, s", "of the limit"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for done, one in enumerate(bench(jobs, n_repeats, clock), 1):
        if isinstance(one, Measured):
            found.append(one)
            job, limit = one.job, one.limit_seconds
            cells = (f"{one.seconds:.3f}", f"{one.peak_mb:.0f}", f"{limit:.3f}", f"{limit / one.seconds:.0%}")
            table.add_row(job.strategy, f"{job.n_items:,}", str(job.n_classes), *cells)
            print(f"{done} of {len(jobs)}: {job.strategy} at {job.n_items:,}: {cells[0]} s", flush=True)
        else:
            print(f"{done} of {len(jobs)}: {one[0].strategy} failed: {one[1]}", flush=True)
    console.print(table)
    if out is not None:
        records = [one.record() for one in found]
        write_durably(
            out, json.dumps({"machine": machine() | {"clock": clock}, "measured": records}, indent=1).encode()
        )
        console.print(f"figures: {out}", highlight=False, soft_wrap=True)
    regressed = earlier is not None and _say(compare(found, earlier), tolerance)
    if regressed or len(found) < len(jobs):
        raise typer.Exit(1)


def _say(changes: Sequence[Change], tolerance: float) -> bool:
    """Print what changed against the baseline; whether anything got worse."""
    print(f"\n{len(changes)} of them are in the baseline; times in multiples of each run's own limit:")
    worse = False
    for change in changes:
        job, regressed = change.now.job, change.regressed(tolerance)
        worse = worse or bool(regressed)
        where = f"{job.strategy} at {job.n_items:,}, {job.n_classes} classes"
        print(f"{'REGRESSION' if regressed else 'as before' if change.slower > 1 / tolerance else 'faster':>10}  "
              f"{where}: {change.slower:.2f} times the baseline{f' ({regressed})' if regressed else ''}")  # fmt: skip
    return worse
