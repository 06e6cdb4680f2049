"""Mahalanobis distance to the nearest class mean."""

import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.numerics.neighbours import nearest_distance
from mqnet.numerics.softmax import SPAN
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("mahalanobis", needs={"features"})
def mahalanobis(view: RoundView, *, shrinkage: float = 0.1) -> Tensor:
    """`-min_c sqrt((x - mu_c)^T S^-1 (x - mu_c))` over the classes with labelled items [N]; float32 (Lee et al. 2018).

    S is the covariance around the class means, shared by all classes and shrunk as scikit-learn does it:
    `(1 - shrinkage) S + shrinkage tr(S)/d I`, so fewer items than dimensions do no harm. Where every class has a
    single item S is taken as the identity. Constant without any known item. The distance, not its square: the square's
    tail would rule the z-score.
    """
    if not 0.0 < shrinkage <= 1.0:
        raise ConfigError(f"shrinkage is {shrinkage}; give a share in (0, 1].")
    known = view.labelled.known
    if not bool(known.any()):
        return torch.zeros(len(view))
    # float64: the covariance of a few items is nearly singular
    items, classes = view.labelled.column("features")[known].double(), view.labelled.answers[known]
    _, member = classes.unique(return_inverse=True)
    n_seen = int(member.max()) + 1
    means = torch.zeros(n_seen, items.shape[1], dtype=items.dtype).index_add_(0, member, items)
    means /= torch.bincount(member)[:, None]
    whiten, centre = _whitener(items - means[member], shrinkage), means.mean(0)
    targets = (means - centre) @ whiten
    scores = [
        -nearest_distance((rows.double() - centre) @ whiten, targets) for rows in view.column("features").split(SPAN)
    ]
    return torch.cat(scores)


def _whitener(deviations: Tensor, shrinkage: float) -> Tensor:
    """W [d, d] with W W^T the inverse of the shrunk covariance of deviations [n, d]."""
    n, d = deviations.shape
    unit = torch.eye(d, dtype=deviations.dtype)
    covariance = deviations.T @ deviations / n
    average = covariance.trace() / d
    if not float(average) > 0.0:
        return unit
    # scaled to trace d first: otherwise a tiny unit of the features would underflow
    shrunk = (1.0 - shrinkage) * covariance / average + shrinkage * unit
    factor = torch.linalg.cholesky(shrunk)
    return torch.linalg.solve_triangular(factor, unit, upper=False).T / average.sqrt()
