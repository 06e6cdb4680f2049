"""Length of the last layer's gradient."""

from torch import Tensor

from mqnet.numerics.softmax import Softmax, norms, per_row
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("gradient_norm", needs={"logits", "features"})
def gradient_norm(view: RoundView) -> Tensor:
    """`|p - onehot(argmax p)| |h|` [N]: the norm of the gradient embedding `(p - onehot) x h` (Ash et al. 2020).

    h are the penultimate features: the loss's gradient by the last layer's weights if the prediction were right.
    In float32 a row whose other classes together have less than 1e-19 gets 0.
    """

    def score(logits: Tensor) -> Tensor:
        softmax = Softmax.of(logits)
        others = softmax.others()
        # (1 - p_top)^2 + sum of the others' p^2, over the common denominator
        return (others.square() + softmax.others(power=2)).sqrt_() / (1.0 + others)

    return per_row(view.column("logits"), score) * per_row(view.column("features"), norms)
