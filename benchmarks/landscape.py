"""How the learned preference moves: known share of queries and the tangent's slope over rounds and junk.

    python benchmarks/landscape.py RUN [--seeds N] [--plot out.png]

RUN is the folder of a finished run that holds mqnet (benchmarks/embeddings.py landscape --out RUN). Slopes are medians
over seeds: a slope is a ratio of derivatives, and a mean of ratios is decided by one flat spot. `slope` is the query's
(the ratio of mean derivatives over its items), `lowest item` the paper's quantity. A trend is the last three rounds
less the first three, per seed, with a 95% interval over seeds; of slopes on the scale of their logarithm.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mqnet.experiment.campaigns import cell_learner
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.statistics import paired_difference
from mqnet.experiment.stored import stored_config
from mqnet.loop.explain import explain

FLATTEST, STEEPEST = 1e-2, 1e2  # slopes beyond say that one score did not count at all where they were taken


@dataclass(frozen=True)
class Moves:
    """One strategy at one OOD share: steepness of the query's slope and of its lowest item's, known share [S, R]."""

    strategy: str
    ood_share: float
    slope: np.ndarray
    lowest: np.ndarray
    known: np.ndarray


def moves(run: Path, cells: list[Cell], rounds: range) -> Moves:
    slope, lowest, known = [], [], []
    for cell in cells:
        with cell_learner(run, cell) as learner:
            found = [explain(learner, r) for r in rounds]
        slope.append([-one.mean_slope for one in found])
        lowest.append([-one.slope for one in found])
        known.append([np.mean([answer is True for answer in one.answers]) for one in found])
    first = cells[0]
    clipped = [np.clip(values, FLATTEST, STEEPEST) for values in (slope, lowest)]
    return Moves(first.strategy_label, first.ood_share, *clipped, np.asarray(known))


def trend(values: np.ndarray) -> str:
    """Last three rounds less the first three, with its interval over seeds."""
    found = paired_difference(values[:, -3:].mean(axis=1), values[:, :3].mean(axis=1))
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def table(found: list[Moves], rounds: range) -> None:
    print("strategy, OOD share | " + " | ".join(f"round {r}" for r in rounds) + " | trend")
    for one in found:
        name = f"{one.strategy}, {one.ood_share:.0%}"
        for what, values in (("slope", one.slope), ("slope, lowest item", one.lowest)):
            steep = " | ".join(f"{-value:.2f}" for value in np.median(values, axis=0))
            print(f"{name} {what} | {steep} | {trend(np.log(values))} (log of steepness)")
        shares = " | ".join(f"{value:.0%}" for value in one.known.mean(axis=0))
        print(f"{name} known | {shares} | {trend(100 * one.known)} points", flush=True)


def plot(found: list[Moves], rounds: range, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    names = list(dict.fromkeys(one.strategy for one in found))
    figure, axes = plt.subplots(len(names), 2, figsize=(8.4, 3.0 * len(names)), sharex=True, squeeze=False)
    for (left, right), name in zip(axes, names, strict=True):
        ours = [one for one in found if one.strategy == name]
        for one, shade in zip(ours, np.linspace(0.15, 0.85, len(ours)), strict=True):
            look = {"color": plt.get_cmap("viridis")(shade), "marker": "o", "markersize": 3, "linewidth": 1.5}
            left.plot(rounds, 100 * one.known.mean(axis=0), label=f"{one.ood_share:.0%} OOD", **look)
            right.plot(rounds, np.median(one.slope, axis=0), **look)
        left.set(ylim=(40, 100), ylabel=f"{name}\nknown items in the query, %")
        right.set(yscale="log", ylabel="weight of informativeness\nagainst purity (|slope|)")
        right.axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
        for formatted in (right.yaxis.set_major_formatter, right.yaxis.set_minor_formatter):
            formatted(ticker.FormatStrFormatter("%g"))
        for axis in (left, right):
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xticks(list(rounds))
    for axis in axes[-1]:
        axis.set_xlabel("round")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    config = stored_config(args.run)
    cells = [cell for cell in grid(config) if cell.strategy.name == "mqnet"]
    rounds = range(1, config.campaign.rounds + 1)
    groups = dict.fromkeys((cell.strategy_label, cell.ood_share) for cell in cells)
    found = [
        moves(args.run, [c for c in cells if (c.strategy_label, c.ood_share) == group][: args.seeds], rounds)
        for group in groups
    ]
    table(found, rounds)
    if args.plot:
        plot(found, rounds, args.plot)


if __name__ == "__main__":
    main()
