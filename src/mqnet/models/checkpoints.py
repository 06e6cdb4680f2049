"""Where a long training keeps how far it is, and how models say that they can use such a place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from torch import Tensor

from mqnet.models.base import FittedModel, TrainingSet
from mqnet.models.encode import Watcher
from mqnet.rng import Key
from mqnet.types import Arrays

SECONDS_BETWEEN = 30.0
COST_SHARE = 0.02
"""Of the time of a training that may go into its checkpoints: a slow disk is written to less often."""


class Checkpoints(Protocol):
    """A place for the newest state of one training at a time, called by what defines the training."""

    def load(self, name: str) -> Arrays | None:
        """The state kept under this very name; None where there is none, or a damaged one."""
        ...

    def save(self, name: str, state: Arrays) -> None:
        """Keep a state in place of what was there; a process killed on the way leaves the old one."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A target model whose training may be interrupted: the loop calls this instead of `fit`."""

    def fit_resumable(
        self,
        train: TrainingSet,
        columns: frozenset[str],
        key: Key,
        *,
        checkpoints: Checkpoints | None,
        watch: Watcher | None,
    ) -> FittedModel:
        """What `fit` gives, bit for bit, continued from what `checkpoints` hold of the very same training."""
        ...


@runtime_checkable
class Particular(Protocol):
    """A target model that does not take every pool."""

    def check_input(self, example: Tensor) -> None:
        """Refuse a pool by one of its items [1, ...], before anything is asked or written."""
        ...


@dataclass
class Saver:
    """Writes a state now and then: so seldom that it costs next to nothing."""

    checkpoints: Checkpoints
    name: str
    clock: Callable[[], float] = time.monotonic
    _wait: float = field(init=False)
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._wait, self._since = SECONDS_BETWEEN, self.clock()

    def due(self) -> bool:
        """Whether it is time."""
        return self.clock() - self._since >= self._wait

    def save(self, state: Arrays) -> None:
        """Write, and wait all the longer the longer it took."""
        began = self.clock()
        self.checkpoints.save(self.name, state)
        self._since = self.clock()
        self._wait = max(SECONDS_BETWEEN, (self._since - began) / COST_SHARE)
