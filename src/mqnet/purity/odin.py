"""ODIN: temperature and input perturbation."""

import torch
from torch import Tensor

from mqnet.numerics.softmax import Softmax, per_row
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("odin", needs={"odin_logits"})
def odin(view: RoundView) -> Tensor:
    """`max_c softmax(odin_logits)_c` [N], in [1/K, 1] (Liang et al. 2018), float64.

    `odin_logits` are the model's logits / T at the input `x + eps sign(grad_x log max_c softmax(logits / T)_c)`; T and
    eps are options of the model, which needs both for the gradient. In float64, because at T = 1000 the scores
    differ from 1/K in their fourth digit at most.
    """
    return per_row(view.column("odin_logits"), lambda z: Softmax.of(z).total().reciprocal_(), torch.float64)
