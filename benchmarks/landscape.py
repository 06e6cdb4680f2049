"""How the learned preference moves: known share of queries and the tangent's slope over rounds and junk.

    python benchmarks/landscape.py RUN [--seeds 5]

RUN is the folder of a finished run that holds mqnet (benchmarks/embeddings.py landscape --out RUN). Medians over
seeds: a slope is a ratio of derivatives, and a mean of ratios is decided by one flat spot. `slope` is the query's (the
ratio of mean derivatives over its items), `lowest item` the paper's quantity.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mqnet.experiment.campaigns import cell_learner
from mqnet.experiment.cells import grid
from mqnet.experiment.stored import stored_config
from mqnet.loop.explain import explain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    config = stored_config(args.run)
    cells = [cell for cell in grid(config) if cell.strategy_label == "mqnet"]
    rounds = range(1, config.campaign.rounds + 1)
    print("OOD share | " + " | ".join(f"round {r}" for r in rounds))
    for share in config.scenario.ood_share:
        slopes, lowest, shares = [], [], []
        for cell in [cell for cell in cells if cell.ood_share == share][: args.seeds]:
            with cell_learner(args.run, cell) as learner:
                found = [explain(learner, r) for r in rounds]
            slopes.append([one.mean_slope for one in found])
            lowest.append([one.slope for one in found])
            shares.append([np.mean([answer is True for answer in one.answers]) for one in found])
        print(f"{share:.0%} slope | " + " | ".join(f"{value:.2f}" for value in np.median(slopes, axis=0)))
        print(f"{share:.0%} slope, lowest item | " + " | ".join(f"{v:.2f}" for v in np.median(lowest, axis=0)))
        print(f"{share:.0%} known | " + " | ".join(f"{value:.0%}" for value in np.mean(shares, axis=0)), flush=True)


if __name__ == "__main__":
    main()
