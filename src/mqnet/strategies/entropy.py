"""Rank by the informativeness score `entropy` alone."""

from torch import Tensor

from mqnet.informativeness.entropy import entropy
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("entropy")
class Entropy(Ranking):
    """Asks the items whose predicted classes are spread most."""

    needs = frozenset({"logits"})

    def score(self, view: RoundView, key: Key) -> Tensor:
        """The score [N]."""
        return entropy(view)
