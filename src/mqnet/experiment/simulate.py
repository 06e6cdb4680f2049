"""One simulated campaign, measured round by round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mqnet.data.images import ImagePool
from mqnet.data.labelled import Labelled
from mqnet.data.pools import ArrayPool
from mqnet.errors import InputError
from mqnet.experiment.memory import forget_peak, peak_mb
from mqnet.experiment.statistics import auroc
from mqnet.ids import ItemIds
from mqnet.loop.advance import advance
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.opening import PoolLike, as_pool
from mqnet.models.base import FittedModel
from mqnet.models.contrastive.config import CoderConfig
from mqnet.models.encode import encode_items
from mqnet.oracles.simulated import SimulatedOracle, Truth
from mqnet.store.ledger import n_known, n_ood
from mqnet.types import LedgerLine, Oracle, Outcome, Selection
from mqnet.view import OOD_CLASS, RoundView

LOGITS = frozenset({"logits"})


@dataclass(frozen=True)
class RoundResult:
    """What is reported of a round: `accuracy` of the model that ranked its query, the labels it was trained after.

    `n_known` and `n_ood` count answers; `query_known_share` and `recall_known` what the bought items are in truth. NaN
    where a number does not exist (no purity score, no test items, an empty query). `peak_mb` is the process's highest
    resident memory while the round was fitted, encoded and ranked, with libraries and data.
    """

    round: int
    accuracy: float
    spent: float
    n_known: int
    n_ood: int
    query_known_share: float
    purity_auroc: float
    recall_known: float
    seconds_fit: float
    seconds_encode: float
    seconds_select: float
    seconds_learn: float
    peak_mb: float = float("nan")


def simulate(
    pool: PoolLike,
    truth: Sequence[str | None],
    *,
    classes: Sequence[str],
    budget: float,
    rounds: int,
    test: tuple[NDArray[np.floating] | Tensor, Sequence[str]] | None = None,
    strategy: str | Mapping[str, object] = "mqnet",
    model: str | Mapping[str, object] = "head",
    cost_known: float = 1.0,
    cost_ood: float = 1.0,
    coder: CoderConfig | Mapping[str, object] | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> list[RoundResult]:
    """Run a campaign against known truth and return its rounds.

    Images are uint8 [N, 3, S, S]; `coder` are the options of contrastive coders, for strategies that need one on them.
    `truth` names each pool item's class, None (or a name that is not among `classes`) for junk; `test` holds vectors
    and class names of held-out items.
    """
    opened, names = as_pool(pool), tuple(classes)
    known = _truth(opened.ids, truth, names)
    held_out = None
    if test is not None:
        labels = _truth(ItemIds.of([str(i) for i in range(len(test[1]))]), test[1], names).labels
        kind = ImagePool if test[0].ndim == 4 else ArrayPool
        held_out = Labelled(kind(test[0], source="the test items"), labels)
        held_out = held_out if (labels >= 0).all() else _known_only(held_out)
    learner = ActiveLearner(
        opened, names, budget=budget, rounds=rounds, cost_known=cost_known, cost_ood=cost_ood, strategy=strategy,
        model=model, coder=coder, seed=seed, folder=folder, truth=known, monitor=Meter(known, held_out),
    )  # fmt: skip
    with learner:
        return run_campaign(learner, SimulatedOracle(known), known)


def run_campaign(learner: ActiveLearner, oracle: Oracle, truth: Truth) -> list[RoundResult]:
    """Advance a campaign to its end and return its rounds."""
    while advance(learner, oracle).state != "done":
        pass
    return round_results(learner, truth)


def round_results(learner: ActiveLearner, truth: Truth) -> list[RoundResult]:
    """The rounds of a campaign as they are reported, from what is stored."""
    lines, costs = learner.ledger, learner.store.spent_by_round()
    n_pool_known = int((truth.labels >= 0).sum())
    measured = {field.name for field in fields(RoundResult)}
    out: list[RoundResult] = []
    for record in learner.store.rounds():
        if record.round == 0:
            continue
        before = [line for line in lines if line.round < record.round]
        query = [line for line in lines if line.round == record.round]
        in_query, n_asked = _truly_known(query, truth)
        stored = {name: value for name, value in record.metrics.items() if name in measured}
        values: dict[str, float] = {"accuracy": float("nan"), "purity_auroc": float("nan")} | stored
        out.append(
            RoundResult(
                round=record.round,
                spent=math.fsum(cost for round_, cost in costs.items() if round_ < record.round),
                n_known=n_known(before),
                n_ood=n_ood(before),
                query_known_share=in_query / n_asked if n_asked else float("nan"),
                recall_known=(_truly_known(before, truth)[0] + in_query) / n_pool_known
                if n_pool_known
                else float("nan"),
                **values,
            )  # pyright: ignore[reportArgumentType]  # the stored measurements are the fields left over
        )
    return out


def _truly_known(lines: Sequence[LedgerLine], truth: Truth) -> tuple[int, int]:
    """How many of the bought items are known items in truth, whatever was answered, and how many were bought."""
    bought = [line.item for line in lines if line.answer is not Outcome.SKIP]
    return int((truth.of(bought) >= 0).sum()), len(bought)


@dataclass(frozen=True)
class Meter:
    """Measures a round while its model and view are at hand: test accuracy, and how well purity tells junk apart."""

    truth: Truth
    test: Labelled | None

    def __call__(self, view: RoundView, selection: Selection, model: FittedModel) -> dict[str, float]:
        """The measurements to store with the round."""
        out: dict[str, float] = {}
        peak = peak_mb()
        if peak == peak:  # the database holds numbers only: NaN stays out
            out["peak_mb"] = peak
        if self.test is not None and len(self.test.labels):
            logits = encode_items(model, self.test.pool, self.test.pool.ids, LOGITS)["logits"]
            out["accuracy"] = float((logits.argmax(dim=1).numpy() == self.test.labels).mean())
        if selection.purity is not None:
            area = auroc(selection.purity.numpy(), self.truth.of(view.ids) >= 0)
            if area == area:
                out["purity_auroc"] = area
        forget_peak()
        return out


def _truth(ids: ItemIds, names: Sequence[str | None], classes: tuple[str, ...]) -> Truth:
    if len(names) != len(ids):
        raise InputError(f"{len(ids)} items but {len(names)} true labels were given.")
    number = {name: i for i, name in enumerate(classes)}
    labels = [number.get(name, OOD_CLASS) if name is not None else OOD_CLASS for name in names]
    return Truth(ids, np.asarray(labels, dtype=np.int64), classes)


def _known_only(held_out: Labelled) -> Labelled:
    rows = np.flatnonzero(held_out.labels >= 0)
    return Labelled(held_out.pool.subset(held_out.pool.ids.take(rows)), held_out.labels[rows])
