"""Similarity to labelled items in a contrastive space."""

from typing import Literal

import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.numerics.neighbours import nearest_similarity
from mqnet.numerics.softmax import norms, per_row
from mqnet.purity.contrast import contrast
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("csi", needs={"contrastive"})
def csi(
    view: RoundView, *, reference: Literal["in", "ood", "both"] = "both", norm: Literal["on", "off"] = "off"
) -> Tensor:
    """Largest cosine similarity to labelled items in the contrastive space [N] (Tack et al. 2020), float32.

    `reference`: "in", the nearest labelled IN item (the paper's released code); "ood", minus the similarity to the
    nearest labelled OOD item (the paper's appendix), constant without OOD answers; "both", their sum, which measures
    best: AUROC .80/.85/.89 against .76/.79/.80 for "in" at 60/200/800 labels on frozen features, .74 against .68 and
    .63 for "ood" at 200 labels in the space of a CSI coder (docs/findings-images.md). `norm="on"` multiplies by |x| as
    CSI does; it measured worse, for "in" far worse. Constant without IN answers.
    """
    if reference not in ("in", "ood", "both") or norm not in ("on", "off"):
        raise ConfigError(f"csi: reference is in, ood or both, norm is on or off; got '{reference}' and '{norm}'.")
    pool, labelled, known = view.column("contrastive"), view.labelled.column("contrastive"), view.labelled.known
    if not bool(known.any()) or (reference == "ood" and view.n_ood == 0):
        return torch.zeros(len(view))
    if reference == "both":
        scores = contrast(view)
    elif reference == "in":
        scores = nearest_similarity(pool, labelled[known])
    else:
        scores = -nearest_similarity(pool, labelled[~known])
    return scores if norm == "off" else scores * per_row(pool, norms)
