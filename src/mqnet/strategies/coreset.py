"""Core-set selection by k-centre greedy (Sener and Savarese 2018)."""

from mqnet.numerics.kcentre import k_centre_greedy
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking, in_order
from mqnet.types import Selection
from mqnet.view import RoundView


@strategy("coreset")
class CoreSet(Ranking):
    """Asks the items farthest from everything covered so far, the labelled known items being the first centres."""

    needs = frozenset({"features"})

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The first n picks of k-centre greedy on the penultimate features."""
        centres = view.labelled.column("features")[view.labelled.known]
        return in_order(k_centre_greedy(view.column("features"), centres, n))
