"""Predictive entropy."""

import torch
from torch import Tensor

from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("entropy", needs={"logits"})
def entropy(view: RoundView) -> Tensor:
    """`-sum_c p_c log p_c` in nats [N], in [0, log K]."""
    log_p = torch.log_softmax(view.column("logits"), dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)
