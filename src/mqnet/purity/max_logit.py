"""Maximum logit."""

from torch import Tensor

from mqnet.numerics.softmax import largest
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("max_logit", needs={"logits"})
def max_logit(view: RoundView) -> Tensor:
    """The largest logit: `max_c logits_c` [N] (Hendrycks et al. 2022)."""
    return largest(view.column("logits"))
