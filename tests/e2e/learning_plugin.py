"""A strategy with a memory, for tests: it leans towards the vectors that were known items so far."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.types import Arrays, Feedback, Selection
from mqnet.view import RoundView


@strategy("leaning")
class Leaning(Ranking):
    """Ranks by a direction in the embedding that every answered query pulls towards known items."""

    needs = frozenset({"embedding"})

    def __init__(self) -> None:
        self.direction: Tensor | None = None

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        vectors = view.column("embedding").double()
        scores = view.uniform("leaning") if self.direction is None else vectors @ self.direction
        rows = scores.argsort(descending=True, stable=True)[:n]
        return Selection(rows, scores[rows], snapshot={"vectors": vectors[rows]})

    def learn(self, feedback: Sequence[Feedback], key: Key) -> None:
        last = feedback[-1]
        vectors, sign = last.snapshot["vectors"], torch.where(last.answers >= 0, 1.0, -1.0).double()
        pull = (vectors * sign[:, None]).mean(dim=0)
        noise = 0.01 * torch.randn(len(pull), generator=key.torch(), dtype=torch.float64)
        self.direction = pull + noise + (0.5 * self.direction if self.direction is not None else 0.0)

    def state(self) -> Arrays:
        return {} if self.direction is None else {"direction": self.direction}

    def restore(self, state: Arrays) -> None:
        self.direction = state.get("direction")
