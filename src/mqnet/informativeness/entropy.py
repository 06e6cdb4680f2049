"""Predictive entropy."""

from torch import Tensor

from mqnet.numerics.softmax import Softmax, per_row
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("entropy", needs={"logits"})
def entropy(view: RoundView) -> Tensor:
    """`-sum_c p_c log p_c` in nats [N], in [0, log K]."""
    return per_row(view.column("logits"), lambda z: Softmax.of(z).entropy())
