"""A strategy of your own: uncertain items, but less of those that lie near what turned out to be junk.

Join a grid with `mqnet run grid.toml --out DIR --plugin examples/my_strategy.py` and `strategies = ["shy", "random"]`.
"""

from dataclasses import dataclass

from torch import Tensor

from mqnet.informativeness.margin import margin
from mqnet.numerics.neighbours import nearest_similarity
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("shy")
@dataclass
class Shy(Ranking):
    """Small margins first, minus the likeness to the nearest item answered OOD."""

    weight: float = 0.5
    needs = frozenset({"logits", "embedding"})

    def score(self, view: RoundView, key: Key) -> Tensor:
        """The score [N] to rank by; higher = ask first."""
        uncertain = margin(view)
        junk = view.labelled.column("embedding")[~view.labelled.known]
        if len(junk) == 0:
            return uncertain
        return uncertain - self.weight * nearest_similarity(view.column("embedding"), junk)
