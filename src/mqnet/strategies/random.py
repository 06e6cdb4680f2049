"""Uniform random choice."""

import torch
from torch import Tensor

from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.view import RoundView


@strategy("random")
class Random(Ranking):
    """Asks items uniformly at random: the line every strategy must beat."""

    def score(self, view: RoundView, key: Key) -> Tensor:
        """A number in [0, 1) per item, keyed by its id."""
        return torch.from_numpy(key.uniform(view.ids.hashes()))
