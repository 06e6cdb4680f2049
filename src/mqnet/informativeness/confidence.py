"""Least confidence."""

from torch import Tensor

from mqnet.numerics.softmax import Softmax, per_row
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("confidence", needs={"logits"})
def confidence(view: RoundView) -> Tensor:
    """One minus the largest class probability: `1 - max_c softmax(logits)_c` [N], in [0, 1 - 1/K]."""

    def score(logits: Tensor) -> Tensor:
        others = Softmax.of(logits).others()  # 1 - p would lose all digits where p rounds to 1
        return others / (1.0 + others)

    return per_row(view.column("logits"), score)
