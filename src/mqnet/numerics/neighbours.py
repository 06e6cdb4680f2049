"""Nearest references of every pool row: largest cosine similarity, smallest and k-th smallest Euclidean distance.

All run in chunks of pool rows against all references: memory beyond inputs and result is a few tens of MB plus one
float32 copy of the references. Pools may be float16, bfloat16, float32 (a memory-mapped file included) or float64;
products are float32. A bfloat16 candidate search with float32 re-ranking was tried and left out: oneDNN's float32
kernel reaches half of bfloat16's rate, and the re-ranking costs what the faster product saves.

Numeric range: rows of any finite float32 size for cosines (absolute error below 1e-5 for d up to 4,096). Distances are
taken after subtracting the references' mean and are right to a relative error of 1e-3, or 1e-6 of the rows' distance
from that mean, whichever is larger; entries above 1e18 in size overflow, which is an error, never a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from mqnet.numerics.products import require_finite, require_matrix, row_chunks, row_products, unit_rows

Metric = Literal["cosine", "euclidean"]

# References per group in the search for the k largest: the k largest entries lie in the k groups of largest maximum.
_GROUP = 8
# Below this share of |x|^2 + |r|^2 the identity |x|^2 + |r|^2 - 2 x.r has lost too many digits; take the difference.
_CANCELLED = 1e-2


def nearest_similarity(pool: Tensor, refs: Tensor) -> Tensor:
    """Largest cosine similarity of each pool row [N, d] to any reference [M, d]: float32 [N] in [-1, 1].

    The cosine with a zero vector is 0. Raises ValueError without references, or naming a row that is not finite.
    """
    _check(pool, refs)
    units = unit_rows(refs.float())
    result = torch.empty(pool.shape[0], dtype=torch.float32)
    for rows in row_chunks(pool.shape[0], len(units)):
        torch.amax(row_products(unit_rows(pool[rows].float()), units), 1, out=result[rows])
    require_finite("the similarity", result)
    return result.clamp_(-1.0, 1.0)


def nearest_similarity_by_class(pool: Tensor, refs: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Largest cosine similarity of each pool row to the references of each class: float32 [N, K] in [-1, 1].

    `labels` [M] holds classes in [0, K). A class without any reference gets -1, the least a cosine can be.
    """
    require_matrix("pool", pool)
    require_matrix("refs", refs, pool.shape[1])
    if labels.shape != (refs.shape[0],):
        raise ValueError(f"labels must have shape [{refs.shape[0]}], one per reference; got {tuple(labels.shape)}")
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < n_classes):
        raise ValueError(f"labels must lie in [0, {n_classes}); got {int(labels.min())} to {int(labels.max())}")
    order = torch.argsort(labels, stable=True)
    units = unit_rows(refs.float()[order])
    ends = torch.bincount(labels, minlength=n_classes).cumsum(0).tolist() if len(labels) else [0] * n_classes
    spans = [(k, start, end) for k, (start, end) in enumerate(zip([0, *ends], ends, strict=False)) if end > start]
    result = torch.full((pool.shape[0], n_classes), -1.0)
    for rows in row_chunks(pool.shape[0], max(1, len(units))):
        similarity = row_products(unit_rows(pool[rows].float()), units)
        for k, start, end in spans:
            result[rows, k] = similarity[:, start:end].amax(1)
    require_finite("the similarity", result)
    return result.clamp_(-1.0, 1.0)


def nearest_distance(pool: Tensor, refs: Tensor) -> Tensor:
    """Euclidean distance of each pool row [N, d] to its nearest reference [M, d]: float32 [N]."""
    return kth_distance(pool, refs, 1)


def kth_distance(pool: Tensor, refs: Tensor, k: int) -> Tensor:
    """Euclidean distance of each pool row [N, d] to its k-th nearest reference [M, d], the last one if k > M: [N]."""
    result = torch.empty(pool.shape[0])
    for rows, values, _ in _neighbours(pool, refs, k, "euclidean"):
        result[rows] = values[:, -1]
    require_finite("the distance", result)
    return result


def topk_neighbours(pool: Tensor, refs: Tensor, k: int, *, metric: Metric = "cosine") -> tuple[Tensor, Tensor]:
    """The k nearest references of each pool row, best first: values float32 [N, k'] and reference rows int64 [N, k'].

    k' = min(k, M). Values are cosines (largest first) or Euclidean distances (smallest first). Equal values are
    listed by reference row; which of several equal references takes the last place is not defined.
    """
    values = torch.empty(pool.shape[0], min(k, refs.shape[0]))
    indices = torch.empty(values.shape, dtype=torch.int64)
    for rows, chunk_values, chunk_indices in _neighbours(pool, refs, k, metric):
        values[rows], indices[rows] = chunk_values, chunk_indices
    require_finite("the distance" if metric == "euclidean" else "the similarity", values)
    return (values.clamp_(-1.0, 1.0) if metric == "cosine" else values), indices


def _neighbours(pool: Tensor, refs: Tensor, k: int, metric: Metric) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Pool rows, and values and reference rows of their k nearest references, chunk by chunk."""
    _check(pool, refs)
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}")
    k = min(k, refs.shape[0])
    centre = refs.double().mean(0).float() if metric == "euclidean" else torch.zeros(refs.shape[1])
    points = refs.float() - centre if metric == "euclidean" else unit_rows(refs.float())
    squares = points.square().sum(1)
    for rows in row_chunks(pool.shape[0], len(points)):
        if metric == "cosine":
            yield rows, *_k_largest(row_products(unit_rows(pool[rows].float()), points), k)
            continue
        x = pool[rows].float() - centre
        # x.r - |r|^2 / 2: the part of -|x - r|^2 / 2 that differs between references.
        closeness, nearest = _k_largest(row_products(x, points, -0.5 * squares), k)
        squared = x.square().sum(1, keepdim=True) - 2.0 * closeness
        yield rows, *_restore_cancelled(squared, nearest, x, points, squares)


def _k_largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest entries of each row of scores [n, m], largest first, and their columns, equal values by column.

    Two steps where it pays: the k groups of columns with the largest maxima always hold the k largest entries.
    """
    n, m = scores.shape
    if k == 1:
        best = scores.max(1, keepdim=True)
        return best.values, best.indices
    n_groups = m // _GROUP
    if n_groups < 4 * k:
        values, columns = scores.topk(k, 1)
        return _by_column(values, columns)
    whole = n_groups * _GROUP
    grouped = scores[:, :whole].unflatten(
        1, (_GROUP, n_groups)
    )  # group g: columns g, g + n_groups, g + 2 n_groups, ...
    groups = grouped.amax(1).topk(k, 1, sorted=False).indices
    offsets = torch.arange(_GROUP).reshape(1, _GROUP, 1) * n_groups
    columns = (groups.unsqueeze(1) + offsets).flatten(1)
    if whole < m:
        columns = torch.cat([columns, torch.arange(whole, m).expand(n, -1)], 1)
    values, places = scores.gather(1, columns).topk(k, 1)
    return _by_column(values, columns.gather(1, places))


def _by_column(values: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Entries already sorted by value, reordered so that equal values come by rising column."""
    if not bool((values[:, 1:] == values[:, :-1]).any()):
        return values, columns
    columns, order = columns.sort(1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, columns.gather(1, order)


def _restore_cancelled(
    squared: Tensor, nearest: Tensor, x: Tensor, points: Tensor, squares: Tensor
) -> tuple[Tensor, Tensor]:
    """Distances from squared distances [n, k], the badly cancelled ones taken again from the difference of the rows."""
    scale = x.square().sum(1, keepdim=True) + squares[nearest]
    row, place = (squared < _CANCELLED * scale).nonzero(as_tuple=True)
    squared = squared.clamp_min(0.0)
    for span in row_chunks(len(row), x.shape[1]):
        gap = x[row[span]] - points[nearest[row[span], place[span]]]
        squared[row[span], place[span]] = gap.square().sum(1)
    if not len(row):
        return squared.sqrt_(), nearest
    columns, order = nearest.sort(1)
    squared, order = squared.gather(1, order).sort(dim=1, stable=True)
    return squared.sqrt_(), columns.gather(1, order)


def _check(pool: Tensor, refs: Tensor) -> None:
    require_matrix("pool", pool)
    require_matrix("refs", refs, pool.shape[1])
    if refs.shape[0] == 0:
        raise ValueError("refs is empty: nearest neighbours need at least one reference row")
