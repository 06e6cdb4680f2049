"""Softmax and norms of every row, a few hundred KB at a time: what the scores over logits and features share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mqnet.numerics.products import row_chunks

CHUNK_ENTRIES = 131_072
"""Half a MB of float32: a chunk stays in the second-level cache, and a call costs less than what it does."""
FEW_CLASSES = 32
"""Up to here a chunk is transposed: reductions over so short rows run 5 to 20 times slower than over columns."""
SPAN = 16_384
"""Rows that a score over vectors holds copies of at once."""


@dataclass(frozen=True)
class Softmax:
    """The softmax of n rows of logits / T relative to their largest entry, so that nothing overflows.

    Classes lie along axis `over`, rows along the other one.
    """

    top: Tensor
    """[n] the largest logit"""
    bits: Tensor
    """[K, n] or [n, K]: (logit - largest) / (T ln 2), at most 0"""
    weights: Tensor
    """2^bits: in [0, 1], and 1 at the largest; exp2 runs 3 times faster than exp on a CPU"""
    over: int

    @classmethod
    def of(cls, logits: Tensor, temperature: float = 1.0) -> Softmax:
        """Of a chunk [n, K] in float32 or float64."""
        values, over = _by_class(logits)
        top = values.amax(over, keepdim=True)
        bits = (values - top).mul_(1.0 / (temperature * math.log(2.0)))
        return cls(top.squeeze(over), bits, bits.exp2(), over)

    def total(self) -> Tensor:
        """[n] sum of weights, in [1, K]."""
        return self.weights.sum(self.over)

    def others(self, power: int = 1) -> Tensor:
        """[n] sum of weight^power over all classes but one most likely: small sums keep their digits beside its 1."""
        below = self.bits.sign()  # 0 at the largest, -1 elsewhere
        ties = below.sum(self.over).add_(below.shape[self.over] - 1)
        for _ in range(power):
            below.mul_(self.weights)
        return ties.sub_(below.sum(self.over))

    def gap(self) -> Tensor:
        """[n] one minus the second largest weight, to full relative precision; 1 with a single class."""
        is_top = self.bits.sign().add_(1.0)
        # arithmetic on all entries: topk of short rows is 10 times slower, masking with bools 3 times
        second = torch.sub(self.bits, is_top, alpha=1e30).amax(self.over)
        second.masked_fill_(is_top.sum(self.over) > 1.0, 0.0)
        return second.mul_(math.log(2.0)).expm1_().neg_()

    def entropy(self) -> Tensor:
        """[n] in nats: log(sum of weights) - sum of weight log(weight) / sum of weights; nothing cancels."""
        # below -2000 a weight is 0 in float64 too; the bound keeps 0 * -inf out
        spread = self.bits.clamp_min(-2000.0).mul_(self.weights).sum(self.over).mul_(-math.log(2.0))
        others = self.others()
        return others.log1p() + spread / (1.0 + others)


def _by_class(chunk: Tensor) -> tuple[Tensor, int]:
    """A chunk [n, K] as it is reduced fastest over its classes, and the axis on which they lie."""
    if chunk.shape[1] > FEW_CLASSES:
        return chunk, 1
    return torch.from_numpy(np.ascontiguousarray(chunk.detach().numpy().T)), 0  # torch's own copy takes twice as long


def per_row(column: Tensor, score: Callable[[Tensor], Tensor], dtype: torch.dtype | None = None) -> Tensor:
    """`score(chunk)` [n] of every chunk of a column [N, ...], put together [N].

    Chunks and result are float64 for a float64 column and float32 for any other, unless `dtype` says otherwise.
    """
    dtype = dtype or (torch.float64 if column.dtype is torch.float64 else torch.float32)
    out = torch.empty(len(column), dtype=dtype)
    for rows in row_chunks(len(column), math.prod(column.shape[1:]), CHUNK_ENTRIES):
        out[rows] = score(column[rows].to(dtype))
    return out


def largest(column: Tensor) -> Tensor:
    """The largest entry [N] of each row of a column [N, K]."""

    def of(chunk: Tensor) -> Tensor:
        values, over = _by_class(chunk)
        return values.amax(over)

    return per_row(column, of)


def logsumexp(column: Tensor, temperature: float = 1.0) -> Tensor:
    """`log sum_c exp(x_c / T)` [N] of each row of a column [N, K]."""

    def of(chunk: Tensor) -> Tensor:
        softmax = Softmax.of(chunk, temperature)
        # log1p runs at twice the speed of log
        return softmax.total().sub_(1.0).log1p_().add_(softmax.top, alpha=1.0 / temperature)

    return per_row(column, of)


def norms(chunk: Tensor) -> Tensor:
    """Euclidean length [n] of each row [n, d]; squares neither overflow nor vanish for any finite row."""
    lengths = torch.linalg.vector_norm(chunk, dim=1)
    unsure = ~((lengths > 1e-15) & (lengths < 1e15))
    if bool(unsure.any()):
        rows = chunk[unsure]
        peak = rows.abs().amax(1, keepdim=True)
        scaled = rows / torch.where(peak > 0, peak, torch.ones_like(peak))
        lengths[unsure] = torch.linalg.vector_norm(scaled, dim=1) * peak.squeeze(1)
    return lengths
