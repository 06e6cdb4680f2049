"""Smallest margin."""

import torch
from torch import Tensor

from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("margin", needs={"logits"})
def margin(view: RoundView) -> Tensor:
    """Second largest minus largest class probability [N], in [-1, 0]; constant 0 with a single class."""
    logits = view.column("logits")
    if logits.shape[1] < 2:
        return torch.zeros(len(view))
    top = torch.topk(torch.softmax(logits, dim=1), 2, dim=1).values
    return top[:, 1] - top[:, 0]
