"""How good the model is, from items that had no part in its training though they are in the ledger: by cross-fitting.

The known items of the ledger are dealt into folds by their ids. For each fold the model is trained anew on the other
folds' answers and asked for this one's classes: a model of 4 answers in 5, so a little worse than the one in use.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mqnet.loop.audit_evidence import Estimate, Evidence, estimate, known_total
from mqnet.loop.estimates import Draw, count, mean
from mqnet.loop.learner import ActiveLearner
from mqnet.models.base import FittedModel
from mqnet.models.encode import encode_items
from mqnet.rng import Key
from mqnet.types import ItemId, Known, LedgerLine

N_FOLDS = 5
PATIENCE = 120.0
"""Seconds: where cross-fitting would take longer, each round's own model is judged instead."""
ENOUGH = 10
"""Known items drawn at random below which nothing is said of accuracy."""


Between = Callable[[], None]
"""Called before each fit; whoever has something better to do raises an exception of their own."""


class TooSlow(Exception):
    """Training as often as cross-fitting needs would take longer than `PATIENCE`."""


@dataclass(frozen=True)
class Judgement:
    """The model's accuracy on the pool's known items, and what a further round of `n_more` known labels may add."""

    accuracy: Estimate
    gain: Estimate
    n_more: int


def judge(learner: ActiveLearner, of: Evidence, between: Between = lambda: None) -> Judgement:
    """Accuracy and gain after the evidence's last round.

    Gain: the same randomly drawn items are told by the model of all answers and by one of the earlier rounds that hold
    at most half as many known ones. What the later answers bought per doubling of known labels is taken for what the
    next will: learning curves flatten, so this is rather too much than too little.
    """
    known = [line for line in of.lines if isinstance(line.answer, Known)]
    drawn = {item for _, items in of.drawn for item in items}
    random = [line for line in known if line.item in drawn]
    last = max((line.round for line in of.lines), default=0)
    n_more = sum(line.round == last for line in known)
    if len(random) < ENOUGH:
        how = f"{len(random)} known items were drawn at random so far, and fewer than {ENOUGH} say too little"
        return Judgement(_nothing(how, len(random)), _nothing(how, len(random)), n_more)
    earlier = _half(known)
    n_fits = N_FOLDS * (1 if earlier is None else 2)
    try:
        right = correct(learner, of.lines, known, n_fits, between)
        accuracy = _accuracy(of, known, right)
        if earlier is None:
            how = "it takes rounds that doubled the known labels to see what more of them buy"
            return Judgement(accuracy, _nothing(how, len(random)), n_more)
        was = correct(learner, of.before(earlier + 1), random, n_fits, between)
    except TooSlow:
        how = "training this model several times over would take too long"
        return Judgement(_by_rounds(learner, of), _nothing(how, len(random)), n_more)
    n_then = sum(line.round <= earlier for line in known)
    found = mean(np.asarray([float(right[x.item]) - float(was[x.item]) for x in random]))
    scale = math.log1p(n_more / len(known)) / math.log(len(known) / n_then)
    how = (
        f"{len(random)} randomly drawn items, each told by models that had not seen it: of {len(known)} known labels "
        f"and of the first {n_then}, and as much again for each doubling"
    )
    return Judgement(accuracy, estimate(None if found is None else found.times(scale), how), n_more)


def _half(known: Sequence[LedgerLine]) -> int | None:
    """The last round up to which there were some known labels, but at most half of all."""
    rounds = sorted({line.round for line in known})
    upto = {r: sum(line.round <= r for line in known) for r in rounds}
    return max((r for r in rounds if 2 * upto[r] <= len(known)), default=None)


def _accuracy(of: Evidence, known: Sequence[LedgerLine], right: dict[ItemId, bool]) -> Estimate:
    """Share of the pool's known items that are told right: randomly drawn ones stand for all that were left then,
    chosen ones for themselves.
    """
    counted = known_total(of)
    total = max(round(counted.value) if counted else 0, len(known))
    of_known = {line.item for line in known}
    draws: list[Draw] = []
    for round_, items in of.drawn:
        before = [line for line in known if line.round < round_]
        mine = [right[item] for item in items if item in of_known]
        found = sum(right[line.item] for line in before)
        draws.append(Draw(max(total - len(before), len(mine)), found, len(mine), sum(mine)))
    found, left = sum(right.values()), total - len(known)
    interval = count(draws, total, found, found + left)
    how = (
        f"{N_FOLDS}-fold cross-fitting: each item is told by a model that has not seen it; randomly drawn items stand "
        "for all that were left to draw from, chosen ones for themselves"
    )
    return estimate(None if interval is None else interval.times(1.0 / total), how)


def _by_rounds(learner: ActiveLearner, of: Evidence) -> Estimate:
    """Accuracy of each round's own model on what the audit drew after it was trained."""
    answered = {line.item: line for line in of.lines if isinstance(line.answer, Known)}
    right: list[bool] = []
    for round_, items in of.drawn:
        mine = [answered[item] for item in items if item in answered]
        model = learner.model_of(round_) if round_ else None
        if model is not None and mine:
            right += told_right(learner, model, mine).values()
    how = "each round's model on the items drawn at random after it was trained: those of earlier rounds were weaker"
    if len(right) < ENOUGH:
        return _nothing(f"{len(right)} known items were drawn at random after round 0: too few", len(right))
    total = of.n_items  # many more than were drawn: how many are known does not matter
    found = count([Draw(total, 0, len(right), sum(right))], total, 0, total)
    return estimate(None if found is None else found.times(1.0 / total), how)


def _nothing(how: str, n: int) -> Estimate:
    return Estimate(None, None, None, n, how)


def correct(
    learner: ActiveLearner,
    lines: Sequence[LedgerLine],
    asked: Sequence[LedgerLine],
    n_fits: int,
    between: Between = lambda: None,
) -> dict[ItemId, bool]:
    """Whether each known item of `asked` is told right by a model of the answers `lines` without the item's fold.

    `n_fits` is how many fits there are in all: after the first it is clear how long they take.
    """
    ids = learner.pool.ids.select(list({line.item: None for line in (*lines, *asked)}))
    numbers = Key(learner.config.seed).child("folds").uniform(ids.hashes())
    fold = dict(zip(ids, np.floor(numbers * N_FOLDS).astype(int).tolist(), strict=True))
    out: dict[ItemId, bool] = {}
    began = time.perf_counter()
    for k in range(N_FOLDS):
        mine = [line for line in asked if fold[line.item] == k]
        if not mine:
            continue
        between()
        model = learner.fitted_on([line for line in lines if fold[line.item] != k], 1 + max(x.round for x in lines))
        out |= told_right(learner, model, mine)
        if (time.perf_counter() - began) / (k + 1) * n_fits > PATIENCE:
            raise TooSlow
    return out


def told_right(learner: ActiveLearner, model: FittedModel, lines: Sequence[LedgerLine]) -> dict[ItemId, bool]:
    """Whether the model's most likely class is the answer, for known items."""
    number = {name: i for i, name in enumerate(learner.config.classes)}
    ids = learner.pool.ids.select([line.item for line in lines])
    logits = encode_items(model, learner.pool, ids, frozenset({"logits"}))["logits"]
    given = [number[line.answer.name] if isinstance(line.answer, Known) else -1 for line in lines]
    return dict(zip(ids, (logits.argmax(dim=1).numpy() == np.asarray(given)).tolist(), strict=True))
