"""Learning loss (Yoo and Kweon 2019)."""

from torch import Tensor

from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("ll")
class LearningLoss(Ranking):
    """Asks the items whose loss the target model's own loss branch predicts to be largest (LL)."""

    needs = frozenset({"predicted_loss"})

    def score(self, view: RoundView, key: Key) -> Tensor:
        """The predicted loss [N]."""
        return view.column("predicted_loss")
