"""What a strategy cannot do without: bytes that must move and operations that must be done, at this machine's rates."""

from __future__ import annotations

from dataclasses import dataclass

from mqnet.models.head import HeadConfig

FLOAT = 4
HIDDEN = HeadConfig().hidden


@dataclass(frozen=True)
class Job:
    """One strategy at one size: N items of d numbers, K classes, picks, labelled items (half of them OOD)."""

    strategy: str
    n_items: int
    n_classes: int
    dim: int = 256
    n_picks: int = 500
    n_labelled: int = 1000


@dataclass(frozen=True)
class Rates:
    """What a machine does now: GB/s of a plain copy (read and written), GFLOP/s of its best plain float32 product."""

    copy_gb_per_s: float
    product_gflop_per_s: float

    def seconds(self, n_bytes: float, n_flops: float) -> float:
        """The larger of what the memory and what the arithmetic need."""
        return max(n_bytes / self.copy_gb_per_s, n_flops / self.product_gflop_per_s) / 1e9


def work(job: Job) -> tuple[float, float]:
    """Bytes and float32 operations of a direct computation, every column read once.

    Lazy forms skip part of a direct computation's operations, so they may stay below what it needs. A strategy that is
    not known here reads its features once.
    """
    n, d, k, m, classes = (float(x) for x in (job.n_items, job.dim, job.n_picks, job.n_labelled, job.n_classes))
    vectors, logits = FLOAT * n * d, FLOAT * n * classes
    to_labelled, to_head = 2 * n * d * m, 2 * n * HIDDEN * (d + classes + 1)
    rank = (classes + 1) * HIDDEN
    needed: dict[str, tuple[float, float]] = {
        "random": (FLOAT * n, 0.0),
        "ll": (FLOAT * n, 0.0),
        "confidence": (logits, 0.0),
        "margin": (logits, 0.0),
        "entropy": (logits, 0.0),
        "coreset": (vectors, 2 * n * d * (k + m / 2)),
        "badge": (vectors + logits, 2 * n * (d + classes) * k),
        "ccal": (2 * vectors, to_labelled),  # two spaces, the known half of the answers
        # conditional variances given both labelled sets, then every pick against the pool
        "similar": (vectors, to_head + 2 * n * (min(rank, m / 2) ** 2 + min(rank, m) ** 2) + 4 * n * rank * k),
        "sum": (vectors + logits, to_labelled / 2),
        "product": (vectors + logits, to_labelled / 2),
        "mqnet": (vectors + logits, to_labelled + to_head),
    }
    return needed.get(job.strategy, (vectors, 0.0))
