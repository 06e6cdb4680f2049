"""What `sum` and `product` share: a purity and an informativeness score, standardised over the round's pool."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from mqnet.numerics.ranking import top_n
from mqnet.numerics.scaling import Scaler
from mqnet.registry import INFORMATIVENESS, PURITY
from mqnet.rng import Key
from mqnet.strategies.base import Ranking
from mqnet.types import Selection
from mqnet.view import RoundView


@dataclass
class Combined(Ranking):
    """Ranks by a fixed rule over two z-scores; subclasses state the rule.

    The scores are sockets; their defaults are not the two that mqnet reads. What differs from mqnet in the net alone is
    mqnet's own option `combine`.
    """

    purity: str = "knn"
    informativeness: str = "confidence"
    purity_options: dict[str, object] = field(default_factory=dict[str, object])
    informativeness_options: dict[str, object] = field(default_factory=dict[str, object])
    clip: float = 4.0

    def __post_init__(self) -> None:
        self._purity = PURITY.score(self.purity, self.purity_options)
        self._informativeness = INFORMATIVENESS.score(self.informativeness, self.informativeness_options)
        self.needs = self._purity.needs | self._informativeness.needs

    def combine(self, z: Tensor) -> Tensor:
        """The score [N] of clipped z-scores [N, 2]: purity, informativeness."""
        raise TypeError(f"{type(self).__name__} has no rule")

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The n rows that score best, ties by the unclipped z-scores, then by id."""
        purity, informativeness = self._purity(view), self._informativeness(view)
        both = torch.stack([purity, informativeness], dim=1)
        scaler = Scaler.fit(both, clip=self.clip)
        scores = self.combine(scaler.z(both))
        rows = top_n(scores, n, scaler.unclipped(both).sum(dim=1))
        return Selection(rows, scores[rows], purity=purity, informativeness=informativeness)
