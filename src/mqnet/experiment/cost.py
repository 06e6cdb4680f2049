"""What a run on images will train and how long that will take here, from a few timed steps."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from mqnet.data.pools import ItemPool
from mqnet.experiment.cells import Cell, open_scenario
from mqnet.experiment.coders import coder_tasks
from mqnet.loop.coders import CoderJob, FolderShelf
from mqnet.loop.learner import SHARED
from mqnet.loop.opening import make_model
from mqnet.loop.spaces import holds_images
from mqnet.models.base import FittedModel, TargetModel, TrainingSet
from mqnet.models.checkpoints import Particular
from mqnet.models.contrastive.config import KINDS, CoderConfig, Kind
from mqnet.models.contrastive.train import begin
from mqnet.numerics.threads import one_thread
from mqnet.rng import Key
from mqnet.types import Pool

T = TypeVar("T")

TIMED_STEPS = 6
PATIENCE_SECONDS = 5.0
"""After so long a timing ends, with however many steps it has: an estimate must not become a wait."""

SAMPLE = 128
"""Images of the pool that are worked on for the timing."""


@dataclass(frozen=True)
class CoderCost:
    """The trainings of one kind of coder."""

    kind: Kind
    n: int
    n_steps: int
    n_views: int
    seconds: float

    @property
    def line(self) -> str:
        """In words."""
        return (
            f"{_several(self.n, f'{self.kind} coder')}: {self.n_steps:,} steps of {self.n_views:,} views each, "
            f"{_duration(self.seconds)} each"
        )


@dataclass(frozen=True)
class RunCost:
    """A run on images before it starts."""

    n_campaigns: int
    n_models: int
    model: str
    n_steps: int | None
    batch_size: int | None
    n_encoded: int
    """Images that a round's model looks at after its training."""
    seconds_model: float
    seconds_encode: float
    coders: tuple[CoderCost, ...]
    jobs: int

    @property
    def seconds(self) -> float:
        """The whole run, on as many processes as it has."""
        models = self.n_models * (self.seconds_model + self.seconds_encode)
        trained = [coder.seconds for coder in self.coders for _ in range(coder.n)]
        return max([(models + sum(trained)) / self.jobs, *trained])

    @property
    def lines(self) -> list[str]:
        """What will be trained, and how long it will take."""
        steps = f": {self.n_steps:,} steps of {self.batch_size} images each" if self.n_steps and self.batch_size else ""
        return [
            f"{_several(self.n_campaigns, 'campaign')} train {_several(self.n_models, 'model')} '{self.model}'{steps}, "
            f"{_duration(self.seconds_model)} each, and {_duration(self.seconds_encode)} to look at "
            f"{self.n_encoded:,} images",
            *(coder.line for coder in self.coders),
            f"about {_duration(self.seconds)} on {_several(self.jobs, 'core')} "
            f"(from a few timed steps; scores and strategies come on top)",
        ]


def run_cost(out: Path, cells: Sequence[Cell], jobs: int) -> RunCost | None:
    """The cost of these cells; None where the items are no images, or nothing is left to run."""
    if not cells:
        return None
    config = cells[0].config
    scenario = open_scenario(config.scenario, cells[0].ood_share, cells[0].seed)
    if not holds_images(scenario.pool):
        return None
    with one_thread():
        model = make_model(config.campaign_config(scenario.classes, cells[0].strategy, 0))
        if isinstance(model, Particular):  # a model for vectors is refused here, before its first step is timed
            model.check_input(scenario.pool.load(scenario.pool.ids.take(slice(0, 1))))
        fit, look = _model_seconds(model, scenario.pool, len(scenario.classes))
        n_seen = len(scenario.pool.ids) + len(scenario.test.labels)
        missing: Counter[Kind] = Counter(
            KINDS[task.column] for task in coder_tasks(out, cells) if not _there(task.cell, out, task.column)
        )
        coders = [_coder_cost(kind, n, config.coder, scenario.pool) for kind, n in missing.items()]
    steps, batch = (getattr(model, name, None) for name in ("n_steps", "batch_size"))
    n_models = len(cells) * config.campaign.rounds
    return RunCost(
        len(cells), n_models, config.model.name, steps, batch, n_seen, fit, look * n_seen, tuple(coders),
        min(jobs, len(cells) + sum(missing.values())),
    )  # fmt: skip


def _there(cell: Cell, out: Path, column: str) -> bool:
    pool = open_scenario(cell.config.scenario, cell.ood_share, cell.seed).pool
    job = CoderJob(KINDS[column], cell.config.coder, pool.fingerprint(), cell.seed)
    return FolderShelf(out / SHARED).finished(job)


def _model_seconds(model: TargetModel, pool: Pool, n_classes: int) -> tuple[float, float]:
    """Seconds to train the model as configured, and to encode one image; on images of the pool, with made-up labels."""
    inputs = pool.load(pool.ids.sorted().take(slice(0, SAMPLE)))
    train = TrainingSet(inputs, torch.arange(len(inputs)) % n_classes, inputs[:0], n_classes)
    wanted = frozenset({"logits"})
    n_steps = getattr(model, "n_steps", None)
    if not isinstance(n_steps, int):
        fitted, per_fit = _timed(lambda: model.fit(train, wanted, Key(0)))
    else:

        def fit_for(steps: int) -> tuple[FittedModel, float]:
            short: Any = replace(model, n_steps=steps)  # type: ignore[type-var]  # pyright: ignore
            return _timed(lambda: short.fit(train, wanted, Key(0)))

        fitted, first = fit_for(1)  # the first step chooses algorithms
        if first > PATIENCE_SECONDS:
            per_fit = n_steps * first
        else:
            # the best of two: what else the machine does meanwhile only ever adds
            short, longer = (min(fit_for(1 + more)[1] for _ in range(2)) for more in (0, TIMED_STEPS))
            per_fit = short + n_steps * max(0.0, longer - short) / TIMED_STEPS
    return per_fit, _timed(lambda: fitted.encode(inputs, wanted))[1] / len(inputs)


def _coder_cost(kind: Kind, n: int, config: CoderConfig, pool: ItemPool) -> CoderCost:
    n_items = len(pool.ids)
    some = pool.subset(pool.ids.sorted().take(slice(0, max(SAMPLE, config.batch_size))))
    training = begin(some, kind, config, Key(0))
    training.advance()
    timed: list[float] = []
    while len(timed) < TIMED_STEPS and sum(timed) < PATIENCE_SECONDS:
        timed.append(_timed(lambda: float(training.advance()))[1])  # a GPU is waited for
    n_steps = config.n_steps(n_items)
    views = min(config.batch_size, n_items) * config.n_views(kind)
    return CoderCost(kind, n, n_steps, views, n_steps * sorted(timed)[len(timed) // 2])


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
