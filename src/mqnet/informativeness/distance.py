"""Distance to everything labelled."""

import torch
from torch import Tensor

from mqnet.numerics.neighbours import nearest_distance
from mqnet.registry import informativeness
from mqnet.view import RoundView


@informativeness("distance", needs={"embedding"})
def distance(view: RoundView) -> Tensor:
    """Euclidean distance to the nearest labelled item, IN or OOD [N], float32: diversity as informativeness.

    Constant without labelled items (the criterion of k-centre greedy, Sener & Savarese 2018).
    """
    labelled = view.labelled.column("embedding")
    return torch.zeros(len(view)) if len(labelled) == 0 else nearest_distance(view.column("embedding"), labelled)
