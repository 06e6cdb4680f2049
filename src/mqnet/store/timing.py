"""How long answers took: seconds per outcome and view, of the answers that stand."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import sqlalchemy as sa

from mqnet.store.campaign import CampaignStore
from mqnet.store.tables import votes

REVIEWING = "review"
"""Time spent over disagreements is not what a label takes: it is left out."""


@dataclass(frozen=True)
class Timing:
    """Answers of one outcome in one view: their median seconds, and how many were timed."""

    median: float
    n: int


def timings(store: CampaignStore) -> dict[str, dict[str, Timing]]:
    """Timings by outcome ('known', 'ood', 'skip') and view ('focus', 'grid'); what was never timed is left out."""
    query = sa.select(votes.c.kind, votes.c.view, votes.c.seconds).where(
        votes.c.state == "live", votes.c.seconds.is_not(None), votes.c.view != REVIEWING
    )
    found: dict[tuple[str, str], list[float]] = {}
    with store.reading() as connection:
        for row in connection.execute(query.order_by(votes.c.seq)):
            found.setdefault((row.kind, row.view), []).append(row.seconds)
    out: dict[str, dict[str, Timing]] = {}
    for (kind, view), seconds in found.items():
        out.setdefault(kind, {})[view] = Timing(float(median(seconds)), len(seconds))
    return out


def seconds_per_answer(views: dict[str, Timing]) -> Timing:
    """What an answer of one outcome takes: the views' medians, weighted by how often each was used."""
    n = sum(timing.n for timing in views.values())
    return Timing(sum(timing.median * timing.n for timing in views.values()) / n if n else 0.0, n)
