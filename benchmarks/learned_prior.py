"""Does a learned prior beat the default's closed-form start, a ramp along log(P(known) * I)? Judged on other data.

python benchmarks/learned_prior.py --sources digits banking77 --target cifar10 --seeds 100 101 102

Simulated campaigns of `mqnet` on the sources (run here; or the finished ones of a folder that `mqnet run` wrote,
named in place of a source) give query sets: inputs, targets, and the state in which they were ranked (share of OOD
answers so far, known answers a class). One monotone Phi is trained over all of them, pairs within a query set only;
the state moves the hidden biases, which are free, so Phi stays monotone in the scores and need not be in the state.
On the target it replaces the ramp: it ranks round 1, and every later fit starts from it and shrinks towards it
(`prior`); or it ranks all rounds and nothing is learned from answers (`prior only`). Both are compared with the
default over the same pools and initial labels, and so is the fixed V without a net. The OOD share is estimated by the
answers so far: unbiased in round 1 only, afterwards lower the purer the queries were, in the sources as in the
target. Half of the source campaigns draw their queries more evenly (sharpness 0.5), so that their pairs cover more
than what the default would have asked. Query sets are kept in --cache, one file for each source; delete it to run the
campaigns again.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mqnet.experiment.campaigns import cell_learner, cell_scenario, truth_of
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.config import parse_config
from mqnet.experiment.simulate import run_campaign
from mqnet.experiment.statistics import Interval, paired_difference
from mqnet.loop.rounds import feedback_from
from mqnet.meta.fit import ENOUGH_PAIRS
from mqnet.meta.ranking_loss import Pairs, all_pairs, loss_and_pull, n_pairs
from mqnet.meta.skyline import FORMS, HIDDEN, SkylineNet, start_net
from mqnet.meta.target import masked_cross_entropy
from mqnet.oracles.simulated import SimulatedOracle
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.store.campaign import CampaignStore
from mqnet.store.ledger import n_known, n_ood
from mqnet.strategies.mqnet import MqNet
from mqnet.types import Feedback, Selection
from mqnet.view import RoundView

DATA = Path(os.environ.get("MQNET_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data")
N_INPUTS, VALUE = 3, 2  # purity, informativeness and V; the number of V
COMMON = {"kind": "split", "dataset": "embeddings"}
FILES = {name: DATA / "embeddings" / f"cifar10_{name}.npy" for name in ("train", "train_labels", "test", "test_labels")}
SETTINGS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "digits": (
        {"kind": "split", "dataset": "digits", "known_classes": 4, "pool_size": 800},
        {"budget": 20, "rounds": 8},
    ),
    "banking77": (
        {
            **COMMON,
            "train": DATA / "embeddings" / "banking77.npy",
            "table": DATA / "text" / "banking77.csv",
            "label_column": "label",
            "split_column": "split",
            "known_classes": 20,
        },
        {"budget": 50, "rounds": 10},
    ),
    "cifar10": ({**COMMON, **FILES, "known_classes": 4, "pool_size": 8000}, {"budget": 100, "rounds": 10}),
}


@dataclass(frozen=True)
class Ranked:
    """An answered query: the inputs [n, 3] and targets [n] of its items, and the state [2] in which it was ranked."""

    z: Tensor
    target: Tensor
    state: Tensor
    round: int


def state_of(ood: int, known: int, n_classes: int) -> Tensor:
    """Share of OOD answers and log of known answers a class [2], both of about unit size."""
    share = ood / max(ood + known, 1)
    return torch.tensor([(share - 0.4) / 0.25, math.log1p(known / n_classes) - 2.0], dtype=torch.float64).clamp(-3, 3)


# -- the prior ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prior:
    """A net whose hidden biases depend on the state: b + state @ shift, shift [2, 64]."""

    net: SkylineNet
    shift: Tensor

    def at(self, state: Tensor) -> SkylineNet:
        """The net of a state: 257 parameters in the form of any other."""
        return replace(self.net, b1=self.net.b1 + state @ self.shift)


def train(sets: Sequence[Ranked], n_steps: int, lr: float, shrink: float) -> Prior:
    """Adam on the logistic ranking loss, each query set of equal weight, from the default's ramp.

    Shrinkage towards the ramp as in `fit`; the shifts are pulled towards 0, which is no dependence on the state.
    """
    generator = Key(0).child("prior").torch()
    start = start_net(N_INPUTS, FORMS["default"], generator, lead=VALUE)
    z, states = torch.cat([s.z for s in sets]).double(), torch.cat([s.state.expand(len(s.z), 2) for s in sets])
    pairs = [all_pairs(s.target, 1000, generator) for s in sets]
    offsets = np.cumsum([0, *(len(s.target) for s in sets)])[:-1].tolist()
    high = torch.cat([p.high + at for p, at in zip(pairs, offsets, strict=True)])
    low = torch.cat([p.low + at for p, at in zip(pairs, offsets, strict=True)])
    weight = torch.cat([torch.full((len(p),), 1 / len(p) / len(sets), dtype=torch.float64) for p in pairs])
    origin = [*(p.detach().clone() for p in start.parameters()), torch.zeros(2, HIDDEN, dtype=torch.float64)]
    raw = [p.clone().requires_grad_(True) for p in origin]
    optimiser = torch.optim.Adam(raw, lr=lr)
    for step in range(n_steps):
        optimiser.param_groups[0]["lr"] = lr * (1.0 if step < n_steps / 2 else 0.3)
        net, shift = start.with_parameters(tuple(raw[:4])), raw[4]
        w, b1, v, b2 = net.weights()
        phi = torch.sigmoid(z @ w + b1 + states @ shift) @ v + b2
        far = torch.stack([(p - o).square().sum() for p, o in zip(raw, origin, strict=True)]).sum()
        loss = (weight * torch.nn.functional.softplus(phi[low] - phi[high])).sum() + shrink / 128 * far
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return Prior(start.with_parameters(tuple(p.detach() for p in raw[:4])), raw[4].detach())


@lru_cache(maxsize=4)
def load_prior(path: str) -> Prior:
    """The prior of a file that `main` wrote."""
    stored = torch.load(path, weights_only=True)
    return Prior(SkylineNet.restored(FORMS["default"], stored), stored["shift"])


@strategy("mqnet-prior")
@dataclass
class PriorMqNet(MqNet):
    """The default mqnet with the learned prior of a file where the ramp stood (`learns = false`: in every round)."""

    prior: str = ""
    learns: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        # with a warm start `learn` starts from the net that is there: the prior, put there below
        self.meta.settings = replace(self.meta.settings, warm_start=True)

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """As the default does it, by the prior while no net is trained; the counts are kept for `learn`."""
        counts = [view.n_ood, int(view.labelled.known.sum()), view.n_classes]
        learned = self.meta.net
        if learned is None or not self.learns:
            self.meta.net = load_prior(self.prior).at(state_of(*counts))
        selection = super().select(view, n, key)
        self.meta.net = learned
        return replace(selection, constants={**selection.constants, "counts": torch.tensor(counts)})

    def learn(self, feedback: Sequence[Feedback], key: Key) -> None:
        """Fit from the prior of the state in which the next query will be ranked."""
        ood, known, n_classes = feedback[-1].constants["counts"].tolist()
        answers = feedback[-1].answers
        state = state_of(ood + int((answers < 0).sum()), known + int((answers >= 0).sum()), n_classes)
        self.meta.net = load_prior(self.prior).at(state)
        super().learn(feedback, key)


# -- campaigns ---------------------------------------------------------------------------------------------------------


def cells_of(name: str, shares: Sequence[float], seeds: Sequence[int], strategies: Sequence[object]) -> list[Cell]:
    """The campaigns of a data set, all strategies of a pool in a row."""
    scenario, campaign = SETTINGS[name]
    raw = {
        "scenario": {**scenario, "ood_share": list(shares)},
        "campaign": campaign,
        "grid": {"strategies": list(strategies), "seeds": list(seeds)},
    }
    return grid(parse_config(raw))


def run(cell: Cell) -> tuple[list[float], list[Ranked]]:
    """A campaign's accuracies and answered queries."""
    with tempfile.TemporaryDirectory() as folder:
        truth = truth_of(cell_scenario(cell))
        with cell_learner(Path(folder), cell) as learner:
            results = run_campaign(learner, SimulatedOracle(truth), truth)
            return [r.accuracy for r in results], queries(learner.store)


def queries(store: CampaignStore) -> list[Ranked]:
    """The answered queries of a campaign that say anything."""
    lines, classes = store.ledger(), store.config().classes
    out: list[Ranked] = []
    for record in store.rounds():
        if record.snapshot is None:
            continue
        f = feedback_from(record.round, store.blobs.get(record.snapshot), lines, classes)
        target = masked_cross_entropy(f.snapshot["logits"], f.answers)
        before = [line for line in lines if line.round < record.round]
        if n_pairs(target) >= ENOUGH_PAIRS:
            state = state_of(n_ood(before), n_known(before), len(classes))
            out.append(Ranked(f.snapshot["z"], target, state, record.round))
    return out


def source(name: str, seeds: Sequence[int], cache: Path) -> list[Ranked]:
    """Query sets of a source: campaigns run here, or the finished ones of the default mqnet in a run's folder."""
    kept = cache / f"{name.strip('/').replace('/', '_')}_{'_'.join(map(str, seeds))}.pt"
    if kept.is_file():
        return [Ranked(*row) for row in torch.load(kept, weights_only=True)]
    found: list[Ranked] = []
    started = time.perf_counter()
    if name in SETTINGS:
        strategies = ["mqnet", {"name": "mqnet", "sharpness": 0.5}]
        for cell in cells_of(name, (0.1, 0.3, 0.6), seeds, strategies):
            found += run(cell)[1]
    else:
        for folder in sorted(path.parent for path in (Path(name) / "cells").glob("*/rounds.json")):
            store = CampaignStore.open(folder)
            chosen = store.config().strategy
            found += queries(store) if chosen.name == "mqnet" and not chosen.options else []
            store.close()
    cache.mkdir(parents=True, exist_ok=True)
    torch.save([(s.z, s.target, s.state, s.round) for s in found], kept)
    print(f"{name}: {len(found)} query sets in {time.perf_counter() - started:.0f} s", flush=True)
    return found


# -- what it looks like, and what it gains -----------------------------------------------------------------------------


def ordered(sets: Iterable[Ranked], prior: Prior | None) -> tuple[float, float]:
    """Share of pairs in the right order and mean logistic loss, over query sets; the ramp's without a prior."""
    ramp = start_net(N_INPUTS, FORMS["default"], Key(0).torch(), lead=VALUE)
    rights: list[float] = []
    losses: list[float] = []
    for s in sets:
        phi = (prior.at(s.state) if prior else ramp).score(s.z)
        pairs: Pairs = all_pairs(s.target, 5000, Key(0).torch())
        rights.append(float((phi[pairs.high] > phi[pairs.low]).double().mean()))
        losses.append(float(loss_and_pull(phi, pairs, "logistic", 0.0)[0]))
    return float(np.mean(rights)) if rights else math.nan, float(np.mean(losses)) if losses else math.nan


def describe(prior: Prior, sets: Sequence[Ranked]) -> None:
    """Mean slope of Phi along each input over the source items, for some states; the ramp's is (0, 0, 1) nearly."""
    z = torch.cat([s.z for s in sets]).double()
    print("\nmean slope along      z_P     z_I     z_V   rank correlation with V")
    for share, known in ((0.1, 3), (0.1, 50), (0.6, 3), (0.6, 50)):
        state = state_of(round(1000 * share), round(1000 * (1 - share)), 1)
        state[1] = math.log1p(known) - 2.0
        at = z.clone().requires_grad_(True)
        phi = prior.at(state).forward(at)
        (slope,) = torch.autograd.grad(phi.sum(), at)
        ranks = [t.detach().argsort().argsort().double() for t in (phi, z[:, VALUE])]
        same = float(torch.corrcoef(torch.stack(ranks))[0, 1])
        means = "  ".join(f"{m:6.3f}" for m in slope.mean(dim=0).tolist())
        print(f"share {share}, {known:>2} a class   {means}   {same:.3f}", flush=True)


def shown(interval: Interval) -> str:
    return f"{interval.value:+.4f} [{interval.low:+.4f}, {interval.high:+.4f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(SETTINGS)
    parser.add_argument("--sources", nargs="+", default=["digits", "banking77"], help=f"{names}, or folders of runs")
    parser.add_argument("--target", choices=SETTINGS, default="cifar10")
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102, 103, 104, 105])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.6])
    parser.add_argument("--source-seeds", nargs="+", type=int, default=[200, 201, 202])
    parser.add_argument("--rounds", type=int, help="of the target's campaigns")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--shrink", type=float, default=0.01)
    parser.add_argument("--skip", nargs="*", default=[], help="of: 'prior only', 'V, no net'")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "mqnet-learned-prior")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further pool after this long")
    options = parser.parse_args()
    if options.target in options.sources:
        parser.error("the target must be none of the sources.")
    torch.set_num_threads(1)
    began = time.perf_counter()
    sets = [s for name in options.sources for s in source(name, options.source_seeds, options.cache)]
    prior = train(sets, options.steps, options.lr, options.shrink)
    path = options.cache / f"prior_for_{options.target}.pt"
    torch.save({**prior.net.state(), "shift": prior.shift}, path)
    print(f"{len(sets)} query sets, {sum(len(s.z) for s in sets)} items; {time.perf_counter() - began:.0f} s")
    print("on the sources, ramp and prior: right order, loss", ordered(sets, None), ordered(sets, prior))
    describe(prior, sets)
    if options.rounds:
        SETTINGS[options.target][1]["rounds"] = options.rounds
    strategies = [
        {"name": "mqnet", "label": "mqnet"},
        {"name": "mqnet-prior", "prior": str(path), "label": "prior"},
        {"name": "mqnet-prior", "prior": str(path), "learns": False, "label": "prior only"},
        {"name": "mqnet", "combine": "value", "label": "V, no net"},
    ]
    strategies = [s for s in strategies if s["label"] not in options.skip]
    curves: dict[tuple[float, str], list[list[float]]] = {}
    held: list[Ranked] = []
    shares = options.shares
    for seed in options.seeds:
        for share in shares:
            if time.perf_counter() - began > 60 * options.minutes:
                continue
            for cell in cells_of(options.target, [share], [seed], strategies):
                accuracy, asked = run(cell)
                curves.setdefault((share, cell.strategy_label), []).append(accuracy)
                held += asked if cell.strategy_label == "mqnet" else []
        print(f"seed {seed}: {time.perf_counter() - began:.0f} s", flush=True)
    for title, some in (("round 1", [s for s in held if s.round == 1]), ("all rounds", held)):
        ramp, learned = ordered(some, None), ordered(some, prior)
        print(f"on {options.target}, {title}: right order, loss of ramp {ramp}, prior {learned}")
    print(f"\n{options.target}: differences to mqnet, 95% t intervals over seeds\n")
    others = [str(s["label"]) for s in strategies if s["label"] != "mqnet"]
    for label in others:
        gains: list[np.ndarray] = []
        for share in shares:
            base, own = (np.array(curves[share, name]) for name in ("mqnet", label))
            difference = (own - base)[:, 1:]
            gains.append(difference.mean(axis=1))
            print(f"{label:<11} share {share}  n {len(own)}  AULC {base[:, 1:].mean():.4f}", end="  ")
            print(shown(paired_difference(own[:, 1:].mean(axis=1), base[:, 1:].mean(axis=1))), end="  ")
            print("by round", " ".join(f"{d:+.3f}" for d in difference.mean(axis=0)))
        n = min(map(len, gains))
        both = np.mean([g[:n] for g in gains], axis=0)
        print(f"{label:<11} all shares n {n}  {shown(paired_difference(both, np.zeros(n)))}", flush=True)


if __name__ == "__main__":
    main()
