"""How long every strategy takes to rank a pool on this machine, and how much memory beyond the pool's columns."""

from __future__ import annotations

import multiprocessing
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.experiment.limits import Job, Rates, work
from mqnet.experiment.memory import forget_peak, peak_mb
from mqnet.ids import ItemIds, RowNames
from mqnet.numerics.products import row_products
from mqnet.registry import STRATEGY
from mqnet.rng import Key
from mqnet.types import Arrays
from mqnet.view import OOD_CLASS, LabelledView, RoundView

Clock = Literal["wall", "processor"]
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}


@dataclass(frozen=True)
class Measured:
    """Seconds of one ranking and its memory peak beyond the columns, with what this machine does meanwhile."""

    job: Job
    seconds: float
    peak_mb: float
    rates: Rates

    @property
    def limit_seconds(self) -> float:
        """What this machine needs for the bytes and operations of a direct computation."""
        return self.rates.seconds(*work(self.job))

    def record(self) -> dict[str, object]:
        """A flat record for JSON."""
        measured = {"seconds": self.seconds, "peak_mb": self.peak_mb, "limit_seconds": self.limit_seconds}
        return asdict(self.job) | measured | asdict(self.rates)


def bench(
    jobs: Sequence[Job], n_repeats: int = 1, clock: Clock = "wall"
) -> Iterator[Measured | tuple[Job, BaseException]]:
    """Measure each job in processes of its own, one after the other, and yield its fastest run, or its error."""
    for job in jobs:
        try:
            yield min((_in_a_process(job, clock) for _ in range(n_repeats)), key=lambda run: run.seconds)
        except Exception as error:
            yield job, error


def _in_a_process(job: Job, clock: Clock) -> Measured:
    # a fresh process per run: its memory peak is its own
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (job, clock))


def measure(job: Job, clock: Clock = "wall") -> Measured:
    """Rank a made-up round of this size once, and time a plain copy and a plain product beside it.

    The `processor` clock counts what the process had, on one thread: for a machine that others use too.
    """
    if clock == "processor":
        torch.set_num_threads(1)
    now = CLOCKS[clock]
    view = made_up_round(job)
    strategy = STRATEGY.make(job.strategy)
    # small first: libraries set themselves up at their first call
    warm = made_up_round(Job(job.strategy, 500, job.n_classes, job.dim, 5, 20))
    STRATEGY.make(job.strategy).select(warm, 5, Key(0))
    rates = machine_rates(now)
    before = forget_peak()
    seconds = _timed(lambda: strategy.select(view, job.n_picks, Key(0)), now)
    return Measured(job, seconds, max(0.0, peak_mb() - before), rates)


def made_up_round(job: Job) -> RoundView:
    """A round of clustered random features: known classes, as many clusters of junk, and labelled items of both."""
    g = torch.Generator().manual_seed(0)
    centres = torch.randn(2 * job.n_classes, job.dim, generator=g)

    def columns(n: int) -> tuple[Arrays, Tensor]:
        which = torch.randint(2 * job.n_classes, (n,), generator=g)
        features = torch.randn(n, job.dim, generator=g).add_(centres[which])
        logits = features @ centres[: job.n_classes].T / job.dim**0.5
        given: Arrays = dict.fromkeys(("features", "embedding", "contrastive", "contrastive_semantic"), features)
        return given | {"logits": logits, "predicted_loss": logits.std(dim=1)}, which

    pool, _ = columns(job.n_items)
    labelled, which = columns(job.n_labelled)
    every = ItemIds(RowNames(job.n_items + job.n_labelled))
    answers = torch.where(which < job.n_classes, which, OOD_CLASS)
    return RoundView(
        ids=every.take(np.arange(job.n_labelled, job.n_items + job.n_labelled)),
        columns=pool,
        labelled=LabelledView(every.take(np.arange(job.n_labelled)), labelled, answers),
        n_classes=job.n_classes,
    )


def machine_rates(now: Callable[[], float]) -> Rates:
    """What this machine does now; a product by whichever way is faster here, torch's own or oneDNN's."""
    block, other = torch.ones(16_000_000), torch.ones(16_000_000)
    left, right = torch.ones(4096, 256), torch.ones(2048, 256)
    copies = min(_timed(lambda: other.copy_(block), now) for _ in range(5))
    products = min(
        _timed(call, now) for call in (lambda: left @ right.T, lambda: row_products(left, right)) for _ in range(5)
    )
    return Rates(2 * 64e6 / copies / 1e9, 2 * 4096 * 256 * 2048 / products / 1e9)


def default_jobs(sizes: Sequence[int], classes: Sequence[int], names: Sequence[str], n_picks: int) -> list[Job]:
    """Every strategy that is no reference line, or the named ones, at every size."""
    chosen = names or [name for name in STRATEGY.names() if not STRATEGY.get(name).reference]
    for name in chosen:
        if STRATEGY.get(name).reference:
            raise ConfigError(f"strategy '{name}' sees the truth: there is nothing to measure.")
    return [Job(name, n, k, n_picks=min(n_picks, n)) for n in sizes for k in classes for name in chosen]


def machine() -> dict[str, object]:
    """What was measured on."""
    return {"processor": platform.machine(), "threads": torch.get_num_threads(), "torch": torch.__version__}


def _timed(call: Callable[[], object], now: Callable[[], float]) -> float:
    start = now()
    call()
    return now() - start
