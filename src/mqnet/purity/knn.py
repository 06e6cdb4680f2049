"""Distance to labelled neighbours."""

import torch
from torch import Tensor

from mqnet.numerics.neighbours import kth_distance
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("knn", needs={"embedding"})
def knn(view: RoundView, *, k: int = 5) -> Tensor:
    """Minus the distance to the k-th nearest labelled known item [N]; constant without any (Sun et al. 2022)."""
    known = view.labelled.column("embedding")[view.labelled.known]
    if len(known) == 0:
        return torch.zeros(len(view))
    return -kth_distance(view.column("embedding"), known, min(k, len(known)))
