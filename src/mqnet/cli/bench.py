"""`mqnet bench`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mqnet.experiment.bench import Measured, bench, default_jobs, machine
from mqnet.store.blobs import write_durably

SIZES, CLASSES = (10_000, 50_000), (4,)


def run(sizes: Sequence[int], classes: Sequence[int], names: Sequence[str], n_picks: int, out: Path | None) -> None:
    """Measure strategies, print a table row by row, and keep the figures as JSON if asked for."""
    jobs = default_jobs(sizes or SIZES, classes or CLASSES, names, n_picks)
    console = Console()
    records: list[dict[str, object]] = []
    table = Table(box=None, pad_edge=False)
    for name in ("strategy", "items", "classes", "seconds", "peak MB", "copies of the features"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for done, found in enumerate(bench(jobs), 1):
        if isinstance(found, Measured):
            records.append(found.record())
            job = found.job
            cells = (f"{found.seconds:.3f}", f"{found.peak_mb:.0f}", f"{found.column_reads:.1f}")
            table.add_row(job.strategy, f"{job.n_items:,}", str(job.n_classes), *cells)
            print(f"{done} of {len(jobs)}: {job.strategy} at {job.n_items:,}: {cells[0]} s", flush=True)
        else:
            print(f"{done} of {len(jobs)}: {found[0].strategy} failed: {found[1]}", flush=True)
    console.print(table)
    if out is not None:
        write_durably(out, json.dumps({"machine": machine(), "measured": records}, indent=1).encode())
        console.print(f"figures: {out}", highlight=False, soft_wrap=True)
