"""How long scores take beside what they cannot avoid: reading their column, or one matrix product.

`OMP_NUM_THREADS=1 python benchmarks/scores.py [logits|neighbours] [--items N]`. All candidates of a table run in turn
within every repetition; figures are the least processor time of each, in which a busy machine shows least. For logits
the yardsticks are a plain sum over the whole column, a sum of every row (`column.sum(1)`), and what no softmax goes
without: one exp2 per entry, in the cache. For neighbours it is the chunked float32 product that the search stands on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from mqnet.ids import ItemIds, RowNames
from mqnet.numerics.products import row_chunks, row_products
from mqnet.registry import INFORMATIVENESS, PURITY
from mqnet.view import LabelledView, RoundView

FROM_LOGITS = ("max_logit", "msp", "energy", "react", "odin", "confidence", "margin", "entropy")
COLUMNS: tuple[str, ...] = ("logits", "react_logits", "odin_logits")
VECTORS: tuple[str, ...] = ("embedding", "contrastive", "features")
REPETITIONS = 9


Columns = dict[str, Tensor]


def view_of(columns: Columns, labelled: Columns, answers: Tensor, n_classes: int) -> RoundView:
    n = len(next(iter(columns.values())))
    bought = LabelledView(ItemIds(RowNames(len(answers))), labelled, answers)
    return RoundView(ItemIds(RowNames(n)), columns, bought, n_classes)


def least(candidates: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Least processor seconds of each, interleaved; one round more is run first and forgotten."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for repetition in range(repetitions + 1):
        for name, run in candidates.items():
            start = time.thread_time()
            run()
            if repetition:
                seconds[name].append(time.thread_time() - start)
    return {name: min(times) for name, times in seconds.items()}


def score(name: str, view: RoundView) -> Callable[[], object]:
    entry = (PURITY if name in PURITY.names() else INFORMATIVENESS).get(name)
    return lambda: entry.target(view)


def exponentials(logits: Tensor) -> None:
    """One exp2 per entry, chunk by chunk into one buffer."""
    rows, buffer = logits.reshape(-1), torch.empty(65_536)
    for start in range(0, len(rows) - len(buffer) + 1, len(buffer)):
        torch.exp2(rows[start : start + len(buffer)], out=buffer)


def from_logits(n: int, n_classes: int, repetitions: int = REPETITIONS) -> dict[str, float]:
    logits = 3.0 * torch.randn(n, n_classes, generator=torch.Generator().manual_seed(0))
    columns: Columns = dict.fromkeys(COLUMNS, logits)
    view = view_of(columns, {}, torch.zeros(0, dtype=torch.long), n_classes)
    candidates: dict[str, Callable[[], object]] = {
        "sum": lambda: logits.sum(),
        "row sums": lambda: logits.sum(1),
        "exp2": lambda: exponentials(logits),
        "torch.logsumexp": lambda: logits.logsumexp(1),
        "torch.amax": lambda: logits.amax(1),
    }
    return least(candidates | {name: score(name, view) for name in FROM_LOGITS}, repetitions)


def from_vectors(n: int, repetitions: int = 3, d: int = 256, n_labelled: int = 5000) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    pool, refs = torch.randn(n, d, generator=generator), torch.randn(n_labelled, d, generator=generator)
    answers = torch.arange(n_labelled) % 8 - 4  # half of them junk
    answers[answers < 0] = -1
    columns: Columns = dict.fromkeys(VECTORS, pool)
    labelled: Columns = dict.fromkeys(VECTORS, refs)
    view, everything_known = (view_of(columns, labelled, given, 4) for given in (answers, answers.abs()))

    def product() -> None:
        for rows in row_chunks(n, n_labelled):
            row_products(pool[rows], refs)

    candidates: dict[str, Callable[[], object]] = {
        "product": product,
        "torch.mm": lambda: [pool[rows] @ refs.T for rows in row_chunks(n, n_labelled)],
        "csi": score("csi", view),
        "contrast": score("contrast", view),
        "knn": score("knn", everything_known),
        "distance": score("distance", view),
        "mahalanobis": score("mahalanobis", view),
        "detector": score("detector", view),
    }
    return least(candidates, repetitions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["logits", "neighbours", "all"], nargs="?", default="all")
    parser.add_argument("--items", type=int, default=1_000_000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.part != "neighbours":
        for n_classes in (4, 40):
            seconds = from_logits(chosen.items, n_classes)
            print(f"\n{chosen.items} x {n_classes} float32{'ms':>10}{'/ sum':>10}{'/ row sums':>12}")
            for name, took in seconds.items():
                print(f"{name:<22}{took * 1e3:>10.1f}{took / seconds['sum']:>10.1f}{took / seconds['row sums']:>12.2f}")
    if chosen.part != "logits":
        seconds = from_vectors(chosen.items)
        print(f"\n{chosen.items} x 256 against 5000{'s':>8}{'product / it':>14}")
        for name, took in seconds.items():
            print(f"{name:<24}{took:>8.2f}{seconds['product'] / took:>14.2f}")


if __name__ == "__main__":
    main()
