"""Disagreement of sampled networks."""

import torch
from torch import Tensor

from mqnet.numerics.softmax import Softmax, per_row
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("bald", needs={"mc_logits"})
def bald(view: RoundView) -> Tensor:
    """`H(mean_t p_t) - mean_t H(p_t)` in nats [N], in [0, log K]: what the answer would say about the network.

    `mc_logits` [N, T, K] are the logits of T dropout masks (Houlsby et al. 2011, Gal et al. 2017).
    """

    def score(logits: Tensor) -> Tensor:
        softmax = Softmax.of(logits.flatten(0, 1))
        rows = 1 - softmax.over
        probabilities = softmax.weights / softmax.total().unsqueeze(softmax.over)
        mean = probabilities.unflatten(rows, logits.shape[:2]).mean(rows + 1)
        each = softmax.entropy().reshape(logits.shape[:2]).mean(1)
        # the difference of two entropies can round below 0
        return (torch.special.entr(mean).sum(softmax.over) - each).clamp_min_(0.0)

    return per_row(view.column("mc_logits"), score)
