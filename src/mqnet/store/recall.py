"""Votes by the key they came with: what another tool gave, and later takes back."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from mqnet.store.campaign import CampaignStore
from mqnet.store.consensus import decide
from mqnet.store.inbox import LIVE, WITHDRAWN, votes_of
from mqnet.store.ledger import answer_from
from mqnet.store.project import read_project
from mqnet.store.purchase import withdraw
from mqnet.store.tables import answers, rounds, votes
from mqnet.types import Answer, ItemId


@dataclass(frozen=True)
class Keyed:
    """A live vote and its key."""

    key: str
    item: ItemId
    annotator: str
    answer: Answer


def live(store: CampaignStore, prefix: str) -> list[Keyed]:
    """The live votes whose keys begin with `prefix`, oldest first."""
    query = sa.select(votes).where(votes.c.state == LIVE, votes.c.key.startswith(prefix, autoescape=True))
    with store.reading() as connection:
        rows = connection.execute(query.order_by(votes.c.seq))
        return [Keyed(r.key, r.item, r.annotator, answer_from(r.kind, r.name)) for r in rows]


def n_early(store: CampaignStore) -> int:
    """How many items have live votes and are not in the ledger yet."""
    query = sa.select(sa.func.count(sa.distinct(votes.c.item))).where(
        votes.c.state == LIVE, votes.c.item.not_in(sa.select(answers.c.item))
    )
    with store.reading() as connection:
        return connection.execute(query).scalar_one()


def recall(store: CampaignStore, key: str) -> bool:
    """Take back the vote of this key; False when there is none left, or its round is closed and the answer stands.

    What the item's other votes come to is not bought here: `Inbox.settle` does that.
    """
    with store.writing() as connection:
        vote = connection.execute(sa.select(votes).where(votes.c.key == key, votes.c.state == LIVE)).first()
        if vote is None:
            return False
        line = connection.execute(sa.select(answers).where(answers.c.item == vote.item)).first()
        if line is not None:
            closed = sa.select(rounds.c.closed).where(rounds.c.round == line.round)
            if connection.execute(closed).scalar_one():
                return False
        connection.execute(votes.update().where(votes.c.seq == vote.seq).values(state=WITHDRAWN))
        settings = read_project(connection)
        left = decide(votes_of(connection, vote.item), settings.overlap if settings else 1)
        if line is not None and (left is None or (left != answer_from(line.kind, line.name))):
            withdraw(connection, vote.item)
        return True
