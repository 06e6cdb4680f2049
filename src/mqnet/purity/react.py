"""Energy of rectified activations."""

from torch import Tensor

from mqnet.numerics.softmax import logsumexp
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("react", needs={"react_logits"})
def react(view: RoundView) -> Tensor:
    """Energy after clipping: `log sum_c exp(react_logits_c)` [N] (Sun et al. 2021).

    `react_logits` are the logits of penultimate activations clipped from above at a percentile of the labelled known
    items' activations; the model fixes that bound when it is fitted and stores it in its state.
    """
    return logsumexp(view.column("react_logits"))
