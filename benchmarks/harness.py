"""Measuring implementations in turns: a child process each, time, memory peak, and the machine's best."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

Record = dict[str, Any]
CLOCK = os.environ.get("BENCH_CLOCK", "wall")


@dataclass(frozen=True)
class Job:
    """One implementation of one piece at one size."""

    piece: str
    implementation: str
    n: int
    d: int = 256
    n_classes: int = 4
    n_picks: int = 500
    n_labelled: int = 5000

    @property
    def title(self) -> str:
        return f"{self.piece} N={self.n:,} d={self.d} K={self.n_classes}"


@dataclass(frozen=True)
class Contender:
    """How to run an implementation, and what it is given at most.

    Fewer picks than asked for are scaled up (marked ~); `most_entries` bounds N K d, what materialised gradients hold.
    """

    run: Callable[[Job, Any], Any]
    most_items: int = 10**9
    most_picks: int = 10**9
    most_entries: float = 1e18

    def takes(self, job: Job) -> bool:
        return job.n <= self.most_items and job.n * job.n_classes * job.d <= self.most_entries


def measure(call: Callable[[], Any]) -> tuple[float, float, float, Any]:
    """Seconds of one call, processor seconds, the MB that resident memory rose above where it stood, the result."""
    from mqnet.experiment.memory import forget_peak, peak_mb

    before = forget_peak()
    start, busy = time.perf_counter(), time.process_time()
    result = call()
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    return seconds, processor, peak_mb() - before, result


def machine_rates() -> dict[str, float]:
    """What this machine does now: bytes/s of a copy, flop/s of products as the kernels use them."""
    import torch

    from mqnet.numerics.products import row_products

    def best(call: Callable[[], Any], work: float) -> float:
        clock = time.process_time if CLOCK == "processor" else time.perf_counter
        times: list[float] = []
        for _ in range(8):
            start = clock()
            call()
            times.append(clock() - start)
        return work / min(times)

    source = torch.ones(16_000_000)
    target = torch.empty_like(source)
    x, y, out = torch.randn(2048, 256), torch.randn(4096, 256), torch.empty(2048, 4096)
    x64, y64 = x[:1024].double(), y[:1024].double()
    flops = 2.0 * 2048 * 256 * 4096
    return {
        "copy_bytes": best(lambda: target.copy_(source), 2.0 * source.nbytes),
        "mm_float32": best(lambda: torch.mm(x, y.T, out=out), flops),
        "onednn_float32": best(lambda: row_products(x[:512], y), flops / 4),
        "mm_float64": best(lambda: x64 @ y64.T, flops / 8),
    }


def measure_in_child(script: Path, job: Job, timeout: float = 1800) -> Record:
    """The child's record, or {"error": ...}."""
    command = [sys.executable, str(script), "--child", json.dumps(asdict(job))]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {**asdict(job), "error": f"over {timeout} s"}
    if done.returncode:
        return {**asdict(job), "error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def compare(script: Path, jobs: list[Job], repeat: int) -> list[Record]:
    """All implementations of one piece in turns; prints the best time of each and its ratio to the first."""
    records: dict[str, Record] = {}
    for _ in range(repeat):
        for job in jobs:
            record = measure_in_child(script, job)
            kept = records.get(job.implementation)
            if kept is None or record.get("seconds", float("inf")) < kept.get("seconds", float("inf")):
                records[job.implementation] = record
    print(jobs[0].title, flush=True)
    first = next(iter(records.values())).get("seconds")
    for name, record in records.items():
        if "error" in record:
            print(f"  {name:16s} {record['error'][:90]}", flush=True)
            continue
        mark = "~" if record["scaled"] else " "
        ratio = f"{record['seconds'] / first:8.2f} x" if first else ""
        print(
            f"  {name:16s}{mark}{record['seconds']:9.2f} s {ratio} peak +{record['peak_mb']:6.0f} MB"
            f"  direct limit {record['limit_seconds']:7.2f} s = {record['limit_seconds'] / record['seconds']:5.0%}",
            flush=True,
        )
    return list(records.values())


def job_of(record: Record) -> Job:
    return Job(**{field.name: record[field.name] for field in fields(Job)})


def against_baseline(records: Iterable[Record], path: Path, tolerance: float) -> int:
    """Prints what an earlier run's JSON says of the same jobs, times in multiples of each run's own limit.

    Returns how many became slower by more than `tolerance` (and a twentieth of a second).
    """
    before = {job_of(r): r for r in json.loads(path.read_text()) if "seconds" in r}
    n_regressions = 0
    print(f"against {path}:")
    for record in records:
        earlier = before.get(job_of(record)) if "seconds" in record else None
        if earlier is None:
            continue
        slower = record["seconds"] / record["limit_seconds"] / (earlier["seconds"] / earlier["limit_seconds"])
        worse = slower > tolerance and record["seconds"] * (1 - 1 / slower) > 0.05
        n_regressions += worse
        title = f"{job_of(record).title} {record['implementation']}"
        print(f"  {'REGRESSION' if worse else 'as before':>10}  {title}: {slower:.2f} x")
    return n_regressions
