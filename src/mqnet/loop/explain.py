"""Why a round asked what it asked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.errors import ConfigError, InputError
from mqnet.ids import ItemIds
from mqnet.loop.learner import ActiveLearner
from mqnet.meta.inputs import MetaInput
from mqnet.meta.landscape import Landscape, landscape, mean_slope, tangent_slope
from mqnet.strategies.mqnet import MqNet
from mqnet.types import Known, Outcome
from mqnet.view import RoundView


@dataclass(frozen=True)
class Explanation:
    """A round's pool in the plane of purity and informativeness (z-scores), and what its query held, draws left out.

    `pool` [N, 2] are clipped z-scores (purity, informativeness) of the unlabelled `ids`; `query` the rows of its items;
    `answers` per query item True for known, False for OOD, None where skipped or open. `slope` is the tangent's at the
    query's lowest-scored item (the paper's quantity), `mean_slope` that of the whole query; `n_drawn` counts the items
    the audit drew beside the query.
    """

    round: int
    purity: str
    informativeness: str
    ids: ItemIds
    pool: Tensor
    phi: Tensor
    query: Tensor
    answers: tuple[bool | None, ...]
    items: tuple[str, ...]
    landscape: Landscape
    slope: float
    mean_slope: float
    trained: bool
    any_ood: bool
    n_drawn: int = 0

    def sentence(self) -> str:
        """What the picture says, in words."""
        known, ood = (sum(a is kind for a in self.answers) for kind in (True, False))
        if not self.any_ood:
            how = f"No answer so far was OOD, so {self.informativeness} alone ranked"
        elif not self.trained:
            how = "No net was trained yet, so the first round's rule ranked"
        else:
            how = "The net learned from the answers so far ranked"
        weight = "more" if self.mean_slope < -1 else "less"
        drawn = f" {self.n_drawn} more were drawn at random." if self.n_drawn else ""
        return (
            f"Round {self.round}: {how} {len(self.pool)} items. The query held {known} known and {ood} OOD items."
            f"{drawn} Over the query the tangent's mean slope is {self.mean_slope:.2f} (at its lowest-scored item "
            f"{self.slope:.2f}): a deviation of informativeness is worth {weight} than one of purity."
        )


@dataclass(frozen=True)
class Why:
    """Why one item was or was not asked in a round."""

    item: str
    asked: bool
    rank: int
    n_items: int
    purity_z: float
    informativeness_z: float
    phi: float
    text: str


def explain(learner: ActiveLearner, round_: int) -> Explanation:
    """The explanation of a round of an MQ-Net campaign, computed again from what is stored with the round.

    The ranking is the one that took place, whatever was corrected since; the query's answers are those of today.
    """
    strategy, inputs, view, _ = _scored(learner, round_)
    drawn = frozenset(learner.store.drawn().get(round_, ()))
    asked = _asked(learner, round_)
    query_items = tuple(item for item in asked if item not in drawn)
    row_of = {item: row for row, item in enumerate(view.ids)}
    rows = torch.tensor([row_of[item] for item in query_items], dtype=torch.long)
    answers = {line.item: line.answer for line in learner.ledger}
    phi = strategy.meta.phi(inputs)
    lowest = int(rows[phi[rows].argmin()]) if len(rows) else int(phi.argmax())
    first, *_ = names = [score.name for score in strategy.scores]
    return Explanation(
        round=round_,
        purity=first,
        informativeness=names[strategy.meta.informativeness],
        ids=view.ids,
        pool=inputs.rule_z,
        phi=phi,
        query=rows,
        answers=tuple(_is_known(answers.get(item)) for item in query_items),
        items=query_items,
        landscape=landscape(strategy.meta, inputs),
        slope=tangent_slope(strategy.meta, inputs, lowest),
        mean_slope=mean_slope(strategy.meta, inputs, rows if len(rows) else torch.tensor([lowest])),
        trained=strategy.meta.net is not None,
        any_ood=view.n_ood > 0,
        n_drawn=len(asked) - len(query_items),
    )


def why(learner: ActiveLearner, round_: int, item: str) -> Why:
    """Why this item was or was not asked in this round."""
    strategy, inputs, view, phi = _scored(learner, round_)
    rows = {name: row for row, name in enumerate(view.ids)}
    if item not in rows:
        earlier = [line.round for line in learner.lines_before(round_) if line.item == item]
        if not earlier:
            raise InputError(f"item '{item}' is not in the campaign's pool of {len(learner.pool.ids)} items.")
        raise InputError(
            f"item '{item}' was asked in round {earlier[0]}: round {round_} had it no longer to choose from."
        )
    row = rows[item]
    order = phi.argsort(descending=True, stable=True)
    rank = int((order == row).nonzero()[0]) + 1
    asked = item in _asked(learner, round_)
    drawn = item in learner.store.drawn().get(round_, ())
    z = inputs.rule_z[row].tolist()
    p_name, i_name = strategy.scores[0].name, strategy.scores[strategy.meta.informativeness].name
    what = "was drawn at random by the audit" if drawn else "was asked" if asked else "was not asked"
    text = (
        f"Item '{item}' {what} in round {round_}. Its score ranks {rank} of "
        f"{len(view)}: purity ({p_name}) {_place(z[0])}, informativeness ({i_name}) {_place(z[1])}."
    )
    if strategy.meta.settings.sharpness and not drawn:
        text += " Items are drawn with odds that grow with the score, to spread the query: rank alone does not decide."
    return Why(item, asked, rank, len(view), z[0], z[1], float(phi[row]), text)


def _scored(learner: ActiveLearner, round_: int) -> tuple[MqNet, MetaInput, RoundView, Tensor]:
    strategy = learner.strategy_of(round_) if 1 <= round_ < len(learner.store.rounds()) else None
    if strategy is None:
        n_rounds = len(learner.store.rounds()) - 1
        which = f"rounds 1 to {n_rounds} have one" if n_rounds >= 1 else "round 1 will be the first to have one"
        raise ConfigError(f"round {round_} has no ranking to explain; {which}.")
    if not isinstance(strategy, MqNet):
        name = learner.config.strategy.name
        raise ConfigError(f"only mqnet's rounds can be explained; this campaign's strategy is '{name}'.")
    _, view = learner.view(round_)
    inputs = strategy.meta.inputs(strategy.raw(view))
    return strategy, inputs, view, strategy.meta.phi(inputs)


def _asked(learner: ActiveLearner, round_: int) -> tuple[str, ...]:
    query = learner.store.offered()
    open_items = query.items if query is not None and query.round == round_ else ()
    return (*(line.item for line in learner.ledger if line.round == round_), *open_items)


def _is_known(answer: object) -> bool | None:
    return None if answer is None or answer is Outcome.SKIP else isinstance(answer, Known)


def _place(z: float) -> str:
    size = "far " if abs(z) > 2 else "" if abs(z) > 0.5 else "about "
    where = "average" if abs(z) <= 0.5 else "above average" if z > 0 else "below average"
    return f"{size}{where} (z = {z:+.2f})"
