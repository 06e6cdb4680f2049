"""Batch active learning by diverse gradient embeddings (Ash et al. 2020)."""

from mqnet.numerics.gradients import output_gradients
from mqnet.numerics.kmeanspp import k_means_plus_plus
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking, in_order
from mqnet.types import Selection
from mqnet.view import RoundView


@strategy("badge")
class Badge(Ranking):
    """Asks items whose gradients `(p - onehot(argmax p)) x h` are large and differ, by k-means++ seeding."""

    needs = frozenset({"logits", "features"})

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The first n centres of the seeding; the gradients stay factorised."""
        gradients = output_gradients(view.column("logits"))
        return in_order(k_means_plus_plus(gradients, view.column("features"), n, key.torch()))
