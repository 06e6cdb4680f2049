"""Least confidence."""

import torch
from torch import Tensor

from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("confidence", needs={"logits"})
def confidence(view: RoundView) -> Tensor:
    """One minus the largest class probability: `1 - max_c softmax(logits)_c` [N], in [0, 1 - 1/K]."""
    logits = view.column("logits")
    # 1 - p loses all digits when p rounds to 1; the largest term leaves `-expm1(-log(sum of the others + 1))` exact
    top = logits.max(dim=1, keepdim=True).values
    return -torch.expm1(-torch.logsumexp(logits - top, dim=1))
