"""What the loop asks of a strategy, and the short form for those that rank by a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from mqnet.numerics.ranking import top_n
from mqnet.rng import Key
from mqnet.types import Arrays, Feedback, Selection
from mqnet.view import RoundView


class Strategy(Protocol):
    """Ranks the unlabelled items of a round and may learn from the answers."""

    @property
    def needs(self) -> frozenset[str]:
        """The columns it reads from the view."""
        ...

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The best n rows of the view (all of them if there are fewer), best first; a prefix of any longer ranking."""
        ...

    def learn(self, feedback: Sequence[Feedback], key: Key) -> None:
        """Learn from the answered queries of all rounds so far, oldest first."""
        ...

    def state(self) -> Arrays:
        """What it has learned, as plain tensors."""
        ...

    def restore(self, state: Arrays) -> None:
        """Become what `state` described."""
        ...


class Ranking:
    """A strategy that ranks by one score, ties by id, and remembers nothing."""

    needs: frozenset[str] = frozenset()

    def score(self, view: RoundView, key: Key) -> Tensor:
        """The score [N] to rank by; higher = ask first."""
        raise TypeError(f"{type(self).__name__} has no score")

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The rows of the n largest scores."""
        scores = self.score(view, key)
        rows = top_n(scores, n)
        return Selection(rows, scores[rows])

    def learn(self, feedback: Sequence[Feedback], key: Key) -> None:
        """Nothing to learn."""

    def state(self) -> Arrays:
        """Nothing to remember."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to become."""


def in_order(rows: Tensor) -> Selection:
    """A selection whose order is all there is to say: the score counts down from 0, so that it does not depend on n."""
    return Selection(rows, -torch.arange(len(rows), dtype=torch.float64))
