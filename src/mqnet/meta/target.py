"""The target of meta-training: what an answer was worth."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def masked_cross_entropy(logits: Tensor, answers: Tensor) -> Tensor:
    """`l_mce(x) = 1[x is IN] * CE(f(x), y)` [n] from the logits [n, K] of the model that ranked the query.

    `answers` [n] are class numbers, -1 for OOD. A known item that the model already gets right with certainty still
    ranks above junk: it is usable, junk is not. The sum in float64 keeps its loss above zero down to 1e-300.
    """
    known = answers >= 0
    losses = torch.zeros(len(answers), dtype=torch.float64)
    if bool(known.any()):
        exact = cross_entropy(logits[known].double(), answers[known], reduction="none")
        losses[known] = exact.clamp_min(torch.finfo(torch.float64).tiny)
    return losses
