"""Meta-training: a net fitted to the answered queries of one or several rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.meta.ranking_loss import MARGIN, Pairs, RankingLoss, all_pairs, drawn_pairs, loss_and_pull, n_pairs
from mqnet.meta.skyline import SkylineNet
from mqnet.numerics.threads import one_thread

ENOUGH_PAIRS = 20
"""With fewer informative pairs than this a query set teaches nothing: the net is left as it was."""


@dataclass(frozen=True)
class QuerySet:
    """The meta-inputs [n, d] that ranked a query and the targets [n] its answers gave."""

    z: Tensor
    target: Tensor


@dataclass(frozen=True)
class FitOptions:
    """How the net is trained. Without `batch` a step sees all informative pairs, up to `most_pairs` of each query set;
    with it, an epoch of random batches of that many pairs (the paper's form).
    """

    loss: RankingLoss = "logistic"
    margin: float = MARGIN
    optimiser: Literal["adam", "sgd"] = "adam"
    n_epochs: int = 60
    lr: float = 0.02
    decay: float = 0.3
    weight_decay: float = 0.0
    shrink: float = 0.01
    most_pairs: int = 5_000
    batch: int | None = None
    order_ties: bool = False

    def __post_init__(self) -> None:
        if (
            min(self.n_epochs, self.most_pairs, self.batch or 1) < 1
            or self.lr <= 0
            or min(self.margin, self.shrink) < 0
        ):
            raise ConfigError(
                "meta-training needs n_epochs, most_pairs, batch >= 1, lr > 0, margin >= 0 and shrink >= 0"
            )


@one_thread()
def fit(net: SkylineNet, query_sets: Sequence[QuerySet], options: FitOptions, generator: torch.Generator) -> SkylineNet:
    """The net trained on these query sets, pairs within each set only, and pulled towards its start by `shrink`.

    Loss: mean over all pairs of the ranking loss + shrink/2 |raw - start|^2 / 64; the learning rate falls by `decay` at
    half. Sets without enough informative pairs are left out; with none left the net is returned as it was.
    """
    usable = [s for s in query_sets if n_pairs(s.target) >= ENOUGH_PAIRS]
    if not usable:
        return net
    z = torch.cat([s.z for s in usable]).double()
    start = [p.detach() for p in net.parameters()]
    raw = [p.detach().clone().requires_grad_(True) for p in net.parameters()]
    current = net.with_parameters(tuple(raw))
    adam = _Adam(raw) if options.optimiser == "adam" else None
    oriented = options.loss == "printed"
    together = _joined([all_pairs(s.target, options.most_pairs, generator, oriented=oriented) for s in usable], usable)
    for epoch in range(options.n_epochs):
        lr = options.lr * (1.0 if epoch < options.n_epochs / 2 else options.decay)
        for pairs in [together] if options.batch is None else _batches(usable, options, generator):
            phi = current.forward(z)
            pull = loss_and_pull(phi.detach(), pairs, options.loss, options.margin)[1]
            # a scalar with the gradient `pull`; passing it as grad_outputs would import sympy, which takes a second
            steps: Sequence[Tensor] = torch.autograd.grad((phi * pull).sum(), raw, materialize_grads=True)
            with torch.no_grad():
                steps = [
                    g + options.shrink / 64 * (p - origin) + options.weight_decay * p
                    for g, p, origin in zip(steps, raw, start, strict=True)
                ]
                for parameter, step in zip(raw, adam(steps) if adam is not None else steps, strict=True):
                    parameter.sub_(step, alpha=lr)
    trained = net.with_parameters(tuple(p.detach() for p in raw))
    if not all(bool(p.isfinite().all()) for p in trained.parameters()):
        raise ConfigError(f"meta-training diverged at lr {options.lr:g}; lower it")
    return trained


def _joined(found: Sequence[Pairs], sets: Sequence[QuerySet]) -> Pairs:
    """Pairs of several query sets as pairs of rows of their concatenation."""
    starts = torch.tensor([0, *(len(s.target) for s in sets)]).cumsum(0).tolist()
    return Pairs(
        torch.cat([p.high + at for p, at in zip(found, starts, strict=False)]),
        torch.cat([p.low + at for p, at in zip(found, starts, strict=False)]),
        torch.cat([p.as_drawn for p in found]),
    )


def _batches(sets: Sequence[QuerySet], options: FitOptions, generator: torch.Generator) -> Iterator[Pairs]:
    """One epoch: each set shuffled and cut into batches of `batch` pairs, two items each."""
    assert options.batch is not None
    at = 0
    for s in sets:
        for rows in torch.randperm(len(s.target), generator=generator).split(2 * options.batch):
            pairs = drawn_pairs(s.target, rows, order_ties=options.order_ties)
            if len(pairs):
                yield Pairs(pairs.high + at, pairs.low + at, pairs.as_drawn)
        at += len(s.target)


class _Adam:
    """Adam's direction (0.9, 0.999): importing `torch.optim` takes longer than a whole campaign's meta-training."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.n_steps = 0

    def __call__(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        self.n_steps += 1
        out: list[Tensor] = []
        for first, second, gradient in zip(self.first, self.second, gradients, strict=True):
            first.lerp_(gradient, 0.1)
            second.lerp_(gradient.square(), 0.001)
            root = (second / (1 - 0.999**self.n_steps)).sqrt_().add_(1e-8)
            out.append(first / (1 - 0.9**self.n_steps) / root)
        return out
