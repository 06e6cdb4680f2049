"""The fixed rule `sum`."""

from dataclasses import dataclass

from torch import Tensor

from mqnet.registry import strategy
from mqnet.strategies._combined import Combined


@strategy("sum")
@dataclass
class Sum(Combined):
    """Ranks by `exp(z_P) + exp(z_I)`, the z-scores clipped: a fixed balance that an outlier in either score decides.

    With `knn` and `confidence` unless told; mqnet's `combine = "sum"` is this rule on the scores mqnet reads.
    """

    def combine(self, z: Tensor) -> Tensor:
        """The score [N] of clipped z-scores [N, 2]."""
        return z.exp().sum(dim=1)
