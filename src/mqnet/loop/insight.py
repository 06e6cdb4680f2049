"""What a round tells its owner: estimates from the audit, what the strategy wants and why, whether to go on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mqnet.ids import ItemIds
from mqnet.loop.audit_evidence import Estimate, evidence, known_left, ood_share, saved
from mqnet.loop.crossfit import Between, judge
from mqnet.loop.explain import Explanation, explain
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.stopping import advice
from mqnet.numerics.ranking import top_n
from mqnet.rng import Key
from mqnet.store.health import Health
from mqnet.strategies.mqnet import MqNet

N_SHOWN = 8
MOST_POINTS = 2_000
KNOWN_WORDS = ("more likely known than most", "about as likely known as others", "less likely known than most")
INFORMATIVE_WORDS = ("more informative than most", "about as informative as others", "less informative than most")


def insight(learner: ActiveLearner, round_: int, between: Between = lambda: None) -> dict[str, Any]:
    """Plain numbers and sentences about a campaign up to a round that is over, ready for JSON (docs/audit.md).

    Estimates carry a 95% interval, the number of random draws behind them and how they came about; what cannot be said
    yet is None. `between` is called before each fit.
    """
    of = evidence(learner, round_)
    judged, cost, left = judge(learner, of, between), saved(of), known_left(of)
    explained = _explained(learner, round_)
    if explained is not None:
        most, least = _by_mqnet(explained)
    else:
        most, least = _by_score(learner, round_) if round_ >= 1 else ([], [])
    return {
        "round": round_,
        "accuracy": _plain(judged.accuracy),
        "ood_share": _plain(ood_share(of)),
        "known_left": _plain(left),
        "saved": {**_plain(cost.saved), "wasted": cost.wasted, "random": cost.random},
        "stopping": {"text": advice(judged, left), "gain": _plain(judged.gain)},
        "landscape": None if explained is None else _landscape(learner, explained),
        "most_wanted": [asdict(one) for one in most],
        "least_wanted": [asdict(one) for one in least],
    }


def keep_insight(learner: ActiveLearner, between: Between = lambda: None) -> None:
    """Find out about the last round that is over and keep it with the campaign, unless that was done."""
    health, over = Health(learner.store), [record.round for record in learner.store.rounds() if record.closed]
    if over and health.insight(over[-1]) is None:
        health.keep_insight(over[-1], insight(learner, over[-1], between))


@dataclass(frozen=True)
class Wanted:
    """An item, why it was wanted so much or so little, and the score that says so."""

    item: str
    reason: str
    score: float


def _plain(found: Estimate) -> dict[str, Any]:
    return asdict(found)


def _explained(learner: ActiveLearner, round_: int) -> Explanation | None:
    return explain(learner, round_) if round_ >= 1 and isinstance(learner.strategy_of(round_), MqNet) else None


def _landscape(learner: ActiveLearner, found: Explanation) -> dict[str, Any]:
    """The round in the plane of the two z-scores, its query and a sample of the rest: at most `MOST_POINTS` items."""
    rest = torch.ones(len(found.pool), dtype=torch.bool)
    rest[found.query] = False
    shown, others = found.query[:MOST_POINTS], rest.nonzero().squeeze(1)
    # which of the rest are shown is keyed by the round: the picture is the same whenever it is drawn
    generator = Key(learner.config.seed).child("round", found.round, "shown").torch()
    sample = others[torch.randperm(len(others), generator=generator)[: MOST_POINTS - len(shown)]]
    points = found.pool[torch.cat([shown, sample])]
    kinds = {True: "known", False: "ood", None: "skip"}
    axis = _rounded(found.landscape.axis[::2])
    return {
        "informativeness": _rounded(points[:, 1]),
        "purity": _rounded(points[:, 0]),
        "asked": list(range(len(shown))),
        "answers": [kinds[answer] for answer in found.answers[: len(shown)]],
        "slope": found.slope if math.isfinite(found.slope) else None,
        "grid": {"x": axis, "y": axis, "z": [_rounded(row) for row in found.landscape.phi[::2, ::2]]},
    }


def _by_mqnet(found: Explanation) -> tuple[list[Wanted], list[Wanted]]:
    score = found.phi if found.any_ood else found.pool[:, 1].double()
    reasons = {
        row: f"{_level(p, KNOWN_WORDS)} and {_level(i, INFORMATIVE_WORDS)} (z {p:+.1f} and {i:+.1f})"
        for row in _end_rows(score)
        for p, i in [found.pool[row].tolist()]
    }
    return _ends(found.ids, score, reasons)


def _by_score(learner: ActiveLearner, round_: int) -> tuple[list[Wanted], list[Wanted]]:
    """By the strategy's score; where it gives none to every item, the beginning of its ranking."""
    name, scored = learner.config.strategy.name, learner.scores_of(round_)
    if scored is not None:
        ids, score = scored
        rows = _end_rows(score)
        place = {row: 1 + int((score > score[row]).sum()) for row in rows}
        return _ends(ids, score, {row: f"'{name}' ranks it {place[row]:,} of {len(ids):,}" for row in rows})
    drawn = frozenset(learner.store.drawn().get(round_, ()))
    top = [pair for pair in learner.store.scores(round_).items() if pair[0] not in drawn][:N_SHOWN]
    return [Wanted(item, f"'{name}' ranks it {i}", score) for i, (item, score) in enumerate(top, 1)], []


def _end_rows(score: Tensor) -> list[int]:
    return [*top_n(score, N_SHOWN).tolist(), *top_n(-score, N_SHOWN).tolist()]


def _ends(ids: ItemIds, score: Tensor, reasons: dict[int, str]) -> tuple[list[Wanted], list[Wanted]]:
    rows = _end_rows(score)
    items = list(ids.take(np.asarray(rows, dtype=np.int64)))
    wanted = [Wanted(item, reasons[row], float(score[row])) for item, row in zip(items, rows, strict=True)]
    half = len(wanted) // 2
    return wanted[:half], wanted[half:]


def _level(z: float, words: tuple[str, str, str]) -> str:
    return words[0] if z > 0.5 else words[2] if z < -0.5 else words[1]


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.double().tolist()]
