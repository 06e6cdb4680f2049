"""Gradient embeddings of a linear last layer, kept as their two factors.

The gradient of cross-entropy by the last layer's weights is `g = a (x) h`, with `a = p - onehot(label)` over the
outputs and h the layer's input. `g_i . g_j = (a_i . a_j)(h_i . h_j)`, so nothing here ever builds the [N, K d]
matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mqnet.numerics.products import require_finite, require_matrix, row_chunks


def output_gradients(logits: Tensor, labels: Tensor | None = None) -> Tensor:
    """`softmax(logits) - onehot(label)` per row, float32 [N, K]; without labels the most likely class (lowest if
    equal).

    The entry of the label is minus the sum of the others, so it keeps its digits where the model is nearly certain.
    """
    if labels is None:
        labels = torch.from_numpy(logits.detach().float().numpy().argmax(1))  # numpy promises the first among equals
    result = torch.softmax(logits.float(), 1)
    column = labels.long()[:, None]
    result.scatter_(1, column, 0.0)
    return result.scatter_(1, column, -result.sum(1, keepdim=True))


class Factored(NamedTuple):
    """Gradient embeddings `a [n, K] (x) h [n, d]` of n items, as their factors."""

    a: Tensor
    h: Tensor

    def take(self, rows: Tensor | slice) -> Factored:
        """The embeddings of some rows."""
        return Factored(self.a[rows], self.h[rows])

    def check(self, name: str, like: Factored | None = None) -> None:
        """Raise ValueError unless both factors are matrices of the same items (with the widths of `like`)."""
        require_matrix(f"{name}.a", self.a, None if like is None else like.a.shape[1])
        require_matrix(f"{name}.h", self.h, None if like is None else like.h.shape[1])
        if len(self.a) != len(self.h):
            raise ValueError(f"{name}: a has {len(self.a)} rows and h has {len(self.h)}; both describe the same items")


def cosine_scales(items: Factored) -> Tensor:
    """Factors [n] in float64 that make `scale * a (x) h` unit vectors; 0 for a zero vector, so its cosines are 0."""
    result = torch.empty(len(items.a), dtype=torch.float64)
    for rows in row_chunks(len(result), items.h.shape[1]):
        a, h = items.a[rows].double(), items.h[rows].double()
        length = torch.linalg.vector_norm(a, dim=1) * torch.linalg.vector_norm(h, dim=1)
        require_finite("the length of the gradient embedding", length)
        result[rows] = torch.where(length > 0, 1.0 / length, torch.zeros_like(length))
    return result
