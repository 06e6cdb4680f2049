"""Free energy."""

from torch import Tensor

from mqnet.numerics.softmax import logsumexp
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("energy", needs={"logits"})
def energy(view: RoundView, *, temperature: float = 1.0) -> Tensor:
    """Minus the free energy over T: `log sum_c exp(logits_c / T)` [N] (Liu et al. 2020)."""
    return logsumexp(view.column("logits"), temperature)
