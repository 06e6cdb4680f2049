"""Rank by the informativeness score `confidence` alone."""

from torch import Tensor

from mqnet.informativeness.confidence import confidence
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("confidence")
class Confidence(Ranking):
    """Asks the items whose most likely class is least likely (CONF)."""

    needs = frozenset({"logits"})

    def score(self, view: RoundView, key: Key) -> Tensor:
        """The score [N]."""
        return confidence(view)
