"""Nearest known item against nearest junk."""

import torch
from torch import Tensor

from mqnet.numerics.neighbours import nearest_similarity
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("contrast", needs={"contrastive"})
def contrast(view: RoundView) -> Tensor:
    """Cosine with the nearest labelled IN item minus that with the nearest OOD item [N], in [-2, 2]; float32.

    Without OOD answers the first term alone; constant without IN answers (METHOD 3).
    """
    pool, labelled, known = view.column("contrastive"), view.labelled.column("contrastive"), view.labelled.known
    if not bool(known.any()):
        return torch.zeros(len(view))
    similarity = nearest_similarity(pool, labelled[known])
    return similarity if view.n_ood == 0 else similarity - nearest_similarity(pool, labelled[~known])
