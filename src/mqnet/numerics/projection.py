"""What is left of factored unit embeddings `a (x) h` after projection on a labelled set, with ridge r on its kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.numerics.gradients import Factored, cosine_scales
from mqnet.numerics.products import row_chunks, row_products

# The K d x K d form is used up to this size (128 MB of float64).
_MOST_FEATURES = 4_096


@dataclass(frozen=True)
class Given:
    """Projection on the labelled items, in one of two forms.

    By items: `a`, `h` and the inverse Cholesky factor of their m x m kernel plus ridge. By features, when that is
    smaller: `I - F' (F F' + r I)^-1 F = r (F' F + r I)^-1`, which is `matrix` [K d, K d], with its root in float32 as
    `screen`.
    """

    a: Tensor
    h: Tensor
    matrix: Tensor
    screen: Tensor | None

    @property
    def size(self) -> int:
        """Rows of the matrix: labelled items, or features."""
        return len(self.matrix)

    def quadratic(self, a: Tensor, h: Tensor) -> Tensor:
        """Conditional variances [n] in float64, without ridge, of unit embeddings a [n, K] (x) h [n, d]."""
        if self.screen is not None:
            embedded = _embed(a, h)
            return ((embedded @ self.matrix) * embedded).sum(1)
        kernel = (a @ self.a.T) * (h @ self.h.T)
        return a.square().sum(1) * h.square().sum(1) - (kernel @ self.matrix.T).square_().sum(1)

    def screened(self, a: Tensor, h: Tensor) -> Tensor:
        """The same from float32 products, by features only."""
        assert self.screen is not None
        return row_products(_embed(a, h).float(), self.screen).square_().sum(1).double()

    def residual(self, a: Tensor, h: Tensor) -> Tensor:
        """The [K, d] matrix Z with cov(i, .) = a_i' Z h_i for one unit embedding a [K] (x) h [d]."""
        if self.screen is not None:
            return (self.matrix @ torch.outer(a, h).flatten()).unflatten(0, (len(a), len(h)))
        weights = self.matrix.T @ (self.matrix @ ((self.a @ a) * (self.h @ h)))
        return torch.outer(a, h) - (self.a * weights[:, None]).T @ self.h


def project(labelled: Factored, strength: Tensor, ridge: float) -> Given:
    """The projection on labelled items, whose kernel with pool items is scaled by `strength` [m]."""
    a, h = labelled.a.double() * cosine_scales(labelled)[:, None], labelled.h.double()
    n_features = a.shape[1] * h.shape[1]
    if bool((strength == 1.0).all()) and n_features <= min(_MOST_FEATURES, 2 * len(a)):
        moments = ridge * torch.eye(n_features, dtype=torch.float64)
        for rows in row_chunks(len(a), n_features):
            part = _embed(a[rows], h[rows])
            moments.addmm_(part.T, part)
        root = _inverse_factor(moments).mul_(ridge**0.5)
        return Given(a, h, root.T @ root, root.float())
    kernel = (a @ a.T) * (h @ h.T)
    kernel.diagonal().add_(ridge)
    # Strength scales the kernel between pool and labelled items only, not that among the labelled.
    return Given(a * strength[:, None], h, _inverse_factor(kernel), None)


def _inverse_factor(matrix: Tensor) -> Tensor:
    """The inverse of the lower Cholesky factor."""
    identity = torch.eye(len(matrix), dtype=torch.float64)
    return torch.linalg.solve_triangular(torch.linalg.cholesky(matrix), identity, upper=False)


def _embed(a: Tensor, h: Tensor) -> Tensor:
    return (a[:, :, None] * h[:, None, :]).flatten(1)
