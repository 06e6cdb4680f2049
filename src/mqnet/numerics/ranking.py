"""Top-n with deterministic ties: the order of every query."""

from __future__ import annotations

import torch
from torch import Tensor


def top_n(scores: Tensor, n: int, *tie_breakers: Tensor) -> Tensor:
    """Rows [min(n, N)] of the largest scores, best first; equal scores by the tie breakers in turn, then by row.

    Views are sorted by id, so the lowest row is the smallest id. `top_n(s, n)` is a prefix of `top_n(s, n + m)`.
    Without tie breakers the cost is one selection over N plus a sort of n. A NaN among the scores is a ValueError.
    """
    n = min(n, len(scores))
    if n <= 0:
        return torch.empty(0, dtype=torch.long)
    threshold = torch.topk(scores, n, sorted=False).values.min()
    if bool(threshold.isnan()):  # NaN sorts above everything, so one anywhere is among the first n
        raise ValueError(f"the score of row {int(scores.isnan().nonzero()[0])} is not a number")
    candidates = (scores >= threshold).nonzero().squeeze(1)  # at least n: everything that ties with the last place
    order = candidates
    for key in (*reversed(tie_breakers), scores):
        order = order[torch.sort(key[order], descending=True, stable=True).indices]
    return order[:n]
