"""The loop body, the same for simulated and human campaigns: only the oracle differs."""

from __future__ import annotations

from mqnet.loop.learner import ActiveLearner
from mqnet.types import Oracle, Status


def advance(learner: ActiveLearner, oracle: Oracle) -> Status:
    """Ask, collect what answers there are, tell them; returns where the campaign stands."""
    query = learner.ask()
    if query is None:
        return Status(len(learner.store.rounds()) - 1, "done", learner.spent, 0)
    answers = oracle.collect(query)
    if answers:
        learner.tell(answers)
    still = learner.store.offered()  # replacements for skipped items, and what cheap answers made room for, are in it
    return Status(query.round, "advanced" if answers else "asking", learner.spent, len(still.items) if still else 0)
