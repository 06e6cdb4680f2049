"""Conditional mutual information over explicit kernels, and plain greedy maximisation of it: the definitions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mqnet.numerics.gradients import Factored


def cosine_kernel(x: Factored, y: Factored) -> Tensor:
    """Cosines of the materialised embeddings in float64, 0 with a zero vector."""

    def unit(items: Factored) -> Tensor:
        g = (items.a.double()[:, :, None] * items.h.double()[:, None, :]).flatten(1)
        length = g.norm(dim=1, keepdim=True)
        return torch.where(length > 0, g / length.clamp_min(1e-300), torch.zeros(()).double())

    return unit(x) @ unit(y).T


def log_det_cmi_value(
    pool: Factored, query: Factored, private: Factored, rows: list[int],
    relevance: float = 1.0, privacy: float = 1.0, ridge: float = 1e-3,
) -> float:  # fmt: skip
    """I(A; Q | P) of the chosen rows, from four determinants: f(A, P) - f(P) - f(A, P, Q) + f(P, Q)."""
    a = pool.take(torch.tensor(rows, dtype=torch.int64))
    sizes = (len(a.a), len(private.a), len(query.a))
    items = Factored(torch.cat([a.a, private.a, query.a]), torch.cat([a.h, private.h, query.h]))
    kernel = cosine_kernel(items, items)
    kernel[: sizes[0], sizes[0] : sizes[0] + sizes[1]] *= privacy
    kernel[sizes[0] : sizes[0] + sizes[1], : sizes[0]] *= privacy
    kernel[: sizes[0], sizes[0] + sizes[1] :] *= relevance
    kernel[sizes[0] + sizes[1] :, : sizes[0]] *= relevance
    kernel.diagonal().add_(ridge)
    chosen, kept, asked = torch.arange(sum(sizes)).split(sizes)

    def f(*parts: Tensor) -> float:
        index = torch.cat(parts)
        return float(torch.logdet(kernel[index][:, index])) if len(index) else 0.0

    return f(chosen, kept) - f(kept) - f(chosen, kept, asked) + f(kept, asked)


def facility_location_cmi_value(
    pool: Factored, query: Factored, private: Factored, rows: list[int], relevance: float = 1.0, privacy: float = 1.0
) -> float:
    """sum_i max(min(max_j s_ij, eta max_q s_iq) - nu max_p s_ip, 0); nothing chosen is worth 0."""
    if not rows or not len(query.a):
        return 0.0
    best = cosine_kernel(pool, pool.take(torch.tensor(rows))).amax(1)
    cap = relevance * cosine_kernel(pool, query).amax(1)
    floor = privacy * cosine_kernel(pool, private).amax(1) if len(private.a) else torch.zeros_like(cap)
    return float((torch.minimum(best, cap) - floor).clamp_min(0.0).sum())


def greedy_plain(value: Callable[[list[int]], float], n: int, k: int, tolerance: float = 1e-9) -> list[int]:
    """Adds the item of largest gain, the lowest row among gains equal within float32, until no gain is left."""
    picks: list[int] = []
    while len(picks) < min(k, n):
        base = value(picks)
        gains = torch.full((n,), -torch.inf, dtype=torch.float64)
        for i in set(range(n)) - set(picks):
            gains[i] = value([*picks, i]) - base
        best = float(gains.max())
        if best < tolerance:
            break
        picks.append(int((gains >= best * (1.0 - 1e-7) - 1e-11).nonzero()[0]))
    return picks
