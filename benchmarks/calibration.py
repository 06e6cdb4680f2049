"""How well P(known), calibrated on the answers so far, predicts the answers of the next query.

    python benchmarks/calibration.py RUN

RUN is the folder of a finished run that holds mqnet (benchmarks/embeddings.py landscape --out RUN). Prints the mean log
loss for several ridges of Platt's fit, and in which share of the campaigns the slope fell to zero.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from mqnet.experiment.campaigns import cell_learner
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.stored import stored_config
from mqnet.loop.rounds import feedback_from
from mqnet.meta.value import calibrate

RIDGES = ((1.0, 1.0), (30.0, 10.0), (100.0, 10.0))
ZERO = 0.05


def queries(run: Path, cell: Cell) -> list[tuple[Tensor, Tensor]]:
    """Log-odds and what was known of each query of a campaign, oldest first."""
    with cell_learner(run, cell) as learner:
        store = learner.store
        found = [
            feedback_from(r.round, store.blobs.get(r.snapshot), learner.ledger, learner.config.classes)
            for r in store.rounds()
            if r.snapshot is not None
        ]
    return [(f.snapshot["odds"], f.answers >= 0) for f in found]


def log_loss(odds: Tensor, known: Tensor, slope: float, offset: float) -> float:
    return float(softplus((1 - 2 * known.double()) * (slope * odds + offset)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run: Path = parser.parse_args().run
    losses: dict[tuple[str, str], list[float]] = defaultdict(list)
    flat: dict[int, list[bool]] = defaultdict(list)
    for cell in grid(stored_config(run)):
        asked = queries(run, cell) if cell.strategy.name == "mqnet" else []
        for place in range(1, len(asked)):
            when = "rounds 2 to 4" if place < 4 else "rounds 5 on"
            odds, known = asked[place]
            losses["as they are", when].append(log_loss(odds, known, 1.0, 0.0))
            past = [torch.cat(parts) for parts in zip(*asked[:place], strict=True)]
            for ridge in RIDGES:
                fitted = calibrate(past[0], past[1], ridge)
                losses[f"ridge {ridge}", when].append(log_loss(odds, known, *fitted))
                if ridge == RIDGES[0]:
                    flat[place + 1].append(fitted[0] < ZERO)
    for (name, when), values in losses.items():
        print(f"{name:>22}, {when}: log loss {np.mean(values):.4f}")
    for number, values in sorted(flat.items()):
        print(f"round {number}: the default's slope is below {ZERO} in {sum(values)} of {len(values)} campaigns")


if __name__ == "__main__":
    main()
