"""Rank by the informativeness score `margin` alone."""

from torch import Tensor

from mqnet.informativeness.margin import margin
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("margin")
class Margin(Ranking):
    """Asks the items whose two most likely classes are closest."""

    needs = frozenset({"logits"})

    def score(self, view: RoundView, key: Key) -> Tensor:
        """The score [N]."""
        return margin(view)
