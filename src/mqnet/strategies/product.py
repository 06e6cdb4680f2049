"""The fixed rule `product`."""

from dataclasses import dataclass

from torch import Tensor

from mqnet.registry import strategy
from mqnet.strategies._combined import Combined


@strategy("product")
@dataclass
class Product(Combined):
    """Ranks by `exp(z_P + z_I)`, the z-scores clipped: a fixed balance that asks for both at once.

    With `knn` and `confidence` unless told; mqnet's `combine = "product"` is this rule on the scores mqnet reads.
    """

    def combine(self, z: Tensor) -> Tensor:
        """The score [N] of clipped z-scores [N, 2]."""
        return z.sum(dim=1).exp()
