"""Smallest margin."""

import torch
from torch import Tensor

from mqnet.numerics.softmax import Softmax, per_row
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("margin", needs={"logits"})
def margin(view: RoundView) -> Tensor:
    """Second largest minus largest class probability [N], in [-1, 0]; constant 0 with a single class."""
    logits = view.column("logits")
    if logits.shape[1] < 2:
        return torch.zeros(len(view))

    def score(chunk: Tensor) -> Tensor:
        softmax = Softmax.of(chunk)
        return -softmax.gap() / softmax.total()

    return per_row(logits, score)
