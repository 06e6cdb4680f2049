"""A reference line: what perfect knowledge of purity would buy."""

import torch
from torch import Tensor

from mqnet.errors import PluginError
from mqnet.informativeness.confidence import confidence
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("oracle-purity", reference=True)
class OraclePurity(Ranking):
    """Least confidence among the items that truly are of a known class; simulations only."""

    needs = frozenset({"logits"})

    def score(self, view: RoundView, key: Key) -> Tensor:
        """Least confidence, and junk below everything."""
        if view.truth is None:
            raise PluginError("oracle-purity needs the truth, which only a simulation has.")
        return torch.where(view.truth >= 0, confidence(view), confidence(view) - 2.0)
