"""What labels cost as measured: the median seconds of the answers so far, shrunk to what was stated while they are few.

Computed when a round begins and stored with it: what its answers are charged, and what its ranking reckons with, does
not change while people answer.
"""

from __future__ import annotations

from mqnet.store.campaign import CampaignStore
from mqnet.store.timing import Timing, seconds_per_answer, timings
from mqnet.types import CampaignConfig, Costs

PRIOR_ANSWERS = 10
"""The stated costs weigh as much as so many timed answers."""


def measured_costs(store: CampaignStore, config: CampaignConfig) -> Costs | None:
    """The next round's costs; None for a campaign that goes by the stated ones."""
    if config.budget.unit == "labels" and config.ranking_costs == "stated":
        return None
    found = {kind: seconds_per_answer(views) for kind, views in timings(store).items()}
    if config.budget.unit == "labels":
        return _in_proportion(config.costs, found)
    project = store.project()
    return _in_minutes(config.costs, found, project.overlap if project else 1)


def _in_minutes(stated: Costs, found: dict[str, Timing], n_people: int) -> Costs:
    """Minutes per label, each answered by `n_people`: (n m + 10 s) / (n + 10), m as measured, s as stated."""

    def shrunk(kind: str, before: float) -> float:
        timing = found.get(kind, Timing(0.0, 0))
        minutes = n_people * timing.median / 60
        return (timing.n * minutes + PRIOR_ANSWERS * before) / (timing.n + PRIOR_ANSWERS)

    known, ood = shrunk("known", stated.known), shrunk("ood", stated.ood)
    return Costs(known, ood, min(shrunk("skip", stated.skip), max(known, ood)))


def _in_proportion(stated: Costs, found: dict[str, Timing]) -> Costs:
    """The stated cost of a known label, and of junk what the measured proportion makes of it.

    log(c_OOD / c_IN) is a mean of the measured and the stated one, the rarer outcome's answers against 10.
    """
    known, ood = found.get("known", Timing(0.0, 0)), found.get("ood", Timing(0.0, 0))
    if not known.median or not ood.median:
        return stated
    weight = min(known.n, ood.n) / (min(known.n, ood.n) + PRIOR_ANSWERS)
    proportion = (ood.median / known.median) ** weight * (stated.ood / stated.known) ** (1 - weight)
    dear = stated.known * proportion
    return Costs(stated.known, dear, min(stated.skip, max(stated.known, dear)))
