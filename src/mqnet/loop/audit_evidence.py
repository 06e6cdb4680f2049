"""What the audit's draws say of the pool: its junk, the known items left, and what random labelling would have bought.

Only uniform draws are evidence; what was chosen counts for itself alone (see `estimates`). Answers are taken as they
stand now, corrections included, in whatever round they were given: an item drawn, skipped and queued again is still
the draw of its round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqnet.loop.estimates import Draw, Interval, count
from mqnet.loop.learner import ActiveLearner
from mqnet.types import OOD, SKIP, Answer, Costs, ItemId, Known, LedgerLine

Hit = Callable[[Answer | None], bool]


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval, the number of draws behind it and how it came about; None where there is none."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    how: str


def estimate(found: Interval | None, how: str) -> Estimate:
    """An interval with how it came about."""
    if found is None:
        return Estimate(None, None, None, 0, how)
    return Estimate(found.value, found.low, found.high, found.n, how)


@dataclass(frozen=True)
class Evidence:
    """A campaign up to the end of a round: its pool's size, its ledger, and what each round's audit drew."""

    n_items: int
    lines: Sequence[LedgerLine]
    drawn: Sequence[tuple[int, Sequence[ItemId]]]
    costs: Costs
    first_chosen: int
    """The first round whose items were chosen, not drawn: 1 after a random initial sample."""

    @property
    def n_left(self) -> int:
        """Items without an answer."""
        return self.n_items - len(self.lines)

    def before(self, round_: int) -> list[LedgerLine]:
        """The lines of earlier rounds."""
        return [line for line in self.lines if line.round < round_]


def evidence(learner: ActiveLearner, round_: int) -> Evidence:
    """The evidence of all rounds up to this one that are over."""
    closed = {record.round for record in learner.store.rounds() if record.closed and record.round <= round_}
    return Evidence(
        n_items=len(learner.pool.ids),
        lines=[line for line in learner.ledger if line.round in closed],
        drawn=[(r, items) for r, items in learner.store.drawn().items() if r in closed],
        costs=learner.config.costs,
        first_chosen=1 if learner.config.initial == "random" else 0,
    )


def known_total(of: Evidence) -> Interval | None:
    """The pool's number of known items; what people skipped is none."""
    answers = {line.item: line.answer for line in of.lines}
    known = sum(_is_known(line.answer) for line in of.lines)
    draws = [
        Draw(
            n_left=of.n_items - len(of.before(round_)),
            found=sum(_is_known(line.answer) for line in of.before(round_)),
            n=len(items),
            hits=sum(_is_known(answers.get(item)) for item in items),
        )
        for round_, items in of.drawn
    ]
    return count(draws, of.n_items, known, known + of.n_left)


def known_left(of: Evidence) -> Estimate:
    """Known items among those without an answer."""
    found, known = known_total(of), sum(_is_known(line.answer) for line in of.lines)
    how = f"of the {of.n_left:,} items without an answer, judged by items drawn at random in every round"
    return estimate(None if found is None else found.times(1.0, -known), how)


def junk(of: Evidence) -> Interval | None:
    """The OOD share among the pool's items that people can tell.

    Of the items without an answer as large a share is taken for tellable as among the draws.
    """
    answers = {line.item: line.answer for line in of.lines}
    told = [line for line in of.lines if line.answer is not SKIP]
    n_drawn = sum(len(items) for _, items in of.drawn)
    n_told = sum(_is_told(answers.get(item)) for _, items in of.drawn for item in items)
    if not n_told:
        return None
    left = round(of.n_left * n_told / n_drawn)
    total, found = len(told) + left, sum(line.answer is OOD for line in told)
    draws: list[Draw] = []
    for round_, items in of.drawn:
        before = [line for line in told if line.round < round_]
        mine = [answers[item] for item in items if _is_told(answers.get(item))]
        n_before, hits_before = len(before), sum(line.answer is OOD for line in before)
        draws.append(Draw(max(total - n_before, len(mine)), hits_before, len(mine), sum(a is OOD for a in mine)))
    counted = count(draws, total, found, found + left)
    return None if counted is None else counted.times(1.0 / total)


def ood_share(of: Evidence) -> Estimate:
    """The pool's OOD share."""
    return estimate(junk(of), "items drawn at random in every round, weighed by what was left to draw from")


@dataclass(frozen=True)
class Saved:
    """Cost on junk that random labelling would have had, less what there was; and both."""

    saved: Estimate
    wasted: float
    random: float | None


def saved(of: Evidence) -> Saved:
    """What was spent on junk after the random initial sample, against random labels for as much money.

    Random labels are OOD with the pool's share q, so of each unit spent q c_OOD / (q c_OOD + (1 - q) c_IN) is wasted.
    """
    chosen = [line for line in of.lines if line.round >= of.first_chosen and line.answer is not SKIP]
    paid = math.fsum(line.cost for line in chosen)
    wasted = math.fsum(line.cost for line in chosen if line.answer is OOD)
    share = junk(of)
    if share is None or not chosen:
        return Saved(estimate(None, "nothing was bought yet but the initial random sample"), wasted, None)
    dear = _mean_cost([line for line in chosen if line.answer is OOD], of.costs.ood)
    cheap = _mean_cost([line for line in chosen if line.answer is not OOD], of.costs.known)

    def at_random(q: float) -> float:
        return paid * q * dear / (q * dear + (1 - q) * cheap)

    value, low, high = (at_random(q) - wasted for q in (share.value, share.low, share.high))
    how = f"random labels for the {paid:g} spent since the initial sample would be junk at the pool's estimated share"
    found = estimate(Interval(value, low, high, share.n), how)
    return Saved(found, wasted, at_random(share.value))


def _mean_cost(lines: Sequence[LedgerLine], stated: float) -> float:
    return math.fsum(line.cost for line in lines) / len(lines) if lines else stated


def _is_known(answer: Answer | None) -> bool:
    return isinstance(answer, Known)


def _is_told(answer: Answer | None) -> bool:
    return answer is not None and answer is not SKIP
