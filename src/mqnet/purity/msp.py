"""Maximum softmax probability."""

from torch import Tensor

from mqnet.numerics.softmax import Softmax, per_row
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("msp", needs={"logits"})
def msp(view: RoundView) -> Tensor:
    """The largest class probability: `max_c softmax(logits)_c` [N], in [1/K, 1] (Hendrycks & Gimpel 2017)."""
    return per_row(view.column("logits"), lambda z: Softmax.of(z).total().reciprocal_())
