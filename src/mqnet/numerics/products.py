"""Matrix products and row chunks shared by the kernels of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import cast

import torch
from torch import Tensor

# About 10 MB of float32 per product: larger outputs leave the second-level cache and pay for fresh pages on every call.
CHUNK_ENTRIES = 2_500_000

_Linear = Callable[[Tensor, Tensor, Tensor | None, str, list[float], str], Tensor]


@cache
def _onednn_linear() -> _Linear | None:
    """The oneDNN product `x @ w.T` of this torch build, or None.

    torch's own float32 `mm` calls MKL, which on AMD processors runs at less than half the rate of oneDNN's kernel
    (91 against 205 GFLOP/s on one Zen 5 core). Both are plain float32; the probe makes sure of it.
    """
    try:
        linear = cast(_Linear, torch.ops.mkldnn._linear_pointwise)  # pyright: ignore
        probe = torch.arange(-30.0, 34.0).reshape(4, 16) / 7.0
        close = torch.allclose(linear(probe, probe, None, "none", [], ""), probe @ probe.T, rtol=1e-6, atol=1e-5)
    except (AttributeError, RuntimeError):
        return None
    return linear if close else None


def row_products(x: Tensor, y: Tensor, offset: Tensor | None = None) -> Tensor:
    """Inner products `x @ y.T` of the rows of x [n, d] and y [m, d], plus `offset` [m] if given, without gradients."""
    linear = _onednn_linear()
    fits = x.dtype is torch.float32 and y.dtype is torch.float32 and x.device.type == "cpu"
    if linear is None or not fits or x.numel() == 0 or y.numel() == 0:
        return x @ y.T if offset is None else torch.addmm(offset, x, y.T)
    # oneDNN keeps what it prepared for every shape it has met, over a megabyte each and never less: rows are padded to
    # few shapes, so that a process that meets another number of labelled items every round does not grow
    n, m = len(x), len(y)
    x, y = _padded(x, 1024), _padded(y, 64)
    offset = offset if offset is None or len(offset) == len(y) else torch.nn.functional.pad(offset, (0, len(y) - m))
    return linear(x.contiguous(), y.contiguous(), offset, "none", [], "")[:n, :m]


def _padded(rows: Tensor, multiple: int) -> Tensor:
    """Rows followed by zeros up to a multiple; short matrices up to a power of two below it."""
    short = 1 << max(4, (len(rows) - 1).bit_length())
    missing = (short if short < multiple else -(-len(rows) // multiple) * multiple) - len(rows)
    return torch.nn.functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def row_chunks(n_rows: int, entries_per_row: int, chunk_entries: int = CHUNK_ENTRIES) -> Iterator[slice]:
    """Consecutive slices that cover `range(n_rows)`, each of about `chunk_entries / entries_per_row` rows."""
    step = min(16_384, max(64, chunk_entries // max(1, entries_per_row)))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def unit_rows(x: Tensor) -> Tensor:
    """Rows of x [n, d] scaled to length 1 in float32 (float64 stays float64); a zero row stays zero.

    Each row is divided by its largest entry first, so squares neither overflow nor vanish: any finite row is safe.
    """
    x = x if x.dtype is torch.float64 else x.float()
    if x.shape[0] == 0:
        return x
    largest = x.abs().amax(1, keepdim=True)
    x = x / torch.where(largest > 0, largest, torch.ones_like(largest))
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / torch.where(length > 0, length, torch.ones_like(length))


def require_matrix(name: str, x: Tensor, width: int | None = None) -> None:
    """Raise ValueError unless x is a two-dimensional floating tensor with at least one column (`width` of them)."""
    if x.ndim != 2 or x.shape[1] == 0 or not x.dtype.is_floating_point:
        raise ValueError(f"{name} must be a floating matrix [rows, columns]; got {x.dtype} {tuple(x.shape)}")
    if width is not None and x.shape[1] != width:
        raise ValueError(f"{name} has {x.shape[1]} columns where {width} are expected")


def require_finite(name: str, values: Tensor) -> None:
    """Raise ValueError that names the first row of `values` [n] or [n, k] with a NaN or an infinity."""
    finite = torch.isfinite(values)
    if not bool(finite.all()):
        row = int((~finite).reshape(values.shape[0], -1).any(1).nonzero()[0])
        raise ValueError(f"{name} of row {row} is not finite: look for NaN, infinite or overflowing entries in it")
