"""The purchase rule (METHOD 1): which items of a ranking may be answered now, given what was answered already."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from mqnet.types import Answer, CampaignConfig, Costs, ItemId, Known, LedgerLine, Outcome

TOLERANCE = 1e-9
"""A share of the dearest label. Costs are floating point: three items at 0.1 must fit into a budget of 0.3."""


def offered(
    ranking: Sequence[ItemId], answered: Mapping[ItemId, float], budget: float, costs: Costs
) -> tuple[ItemId, ...]:
    """The unanswered items of the ranking, in order, that the budget covers whatever their answers will cost.

    Each open item reserves the dearer outcome, so answers may arrive in any order and from several people: the items
    bought in the end are those a strictly sequential purchase would have bought. `answered` maps the round's answered
    items to their recorded costs. An empty result means that the round is over, or that its ranking is used up.
    """
    n_affordable = sure_labels(budget - math.fsum(answered.values()), costs)
    out: list[ItemId] = []
    for item in ranking:
        if len(out) >= n_affordable:
            break
        if item not in answered:
            out.append(item)
    return tuple(out)


def charged(config: CampaignConfig, measured: Costs | None) -> Costs:
    """What a round's answers cost: in minutes what was measured when it began, in labels what the campaign states."""
    return measured if measured is not None and config.budget.unit == "minutes" else config.costs


def sure_labels(budget: float, costs: Costs) -> int:
    """How many labels the budget buys whatever the answers: each at the dearer outcome's price."""
    return max(0, int(budget / costs.dearest + TOLERANCE))


def affords_another(answered: Iterable[float], budget: float, costs: Costs) -> bool:
    """Whether what is left of the round's budget covers the dearer outcome."""
    return sure_labels(budget - math.fsum(answered), costs) >= 1


def spent(lines: Iterable[LedgerLine]) -> float:
    """The recorded cost of these lines."""
    return math.fsum(line.cost for line in lines)


def n_known(lines: Iterable[LedgerLine]) -> int:
    """How many lines name a known class."""
    return sum(isinstance(line.answer, Known) for line in lines)


def n_ood(lines: Iterable[LedgerLine]) -> int:
    """How many lines say OOD."""
    return sum(line.answer is Outcome.OOD for line in lines)


def answer_columns(answer: Answer) -> tuple[str, str | None]:
    """An answer as the (kind, name) it is stored as."""
    return ("known", answer.name) if isinstance(answer, Known) else (answer.value, None)


def answer_from(kind: str, name: str | None) -> Answer:
    """The answer stored as (kind, name)."""
    return Known(name or "") if kind == "known" else Outcome(kind)
