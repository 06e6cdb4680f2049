"""Which items can be lent to a person now, and what is taken over from those who hold many."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import sqlalchemy as sa

from mqnet.store.project import Project
from mqnet.store.tables import answers, candidates, leases, rounds, votes, worker
from mqnet.types import ItemId, Query

LIVE = "live"


def lendable(
    connection: sa.Connection, settings: Project, query: Query | None, annotator: str, n: int, held: list[ItemId]
) -> list[ItemId]:
    """What may be lent to this person, in the order of the newest ranking: what they hold, and the best n others.

    Neither bought, nor answered by them, nor taken by as many others as are wanted.
    """
    newest = connection.execute(sa.select(sa.func.max(rounds.c.round))).scalar()
    state = connection.execute(sa.select(worker.c.state)).scalar()
    if newest is None or (query is None and (state == "done" or not settings.early_answers)):
        return []
    last_open = -1
    if query is not None and query.items:
        place = sa.select(candidates.c.position)
        place = place.where(candidates.c.round == newest, candidates.c.item == query.items[-1])
        last_open = connection.execute(place).scalar_one()
    c, live = candidates.alias(), votes.c.state == LIVE
    n_votes = sa.select(sa.func.count()).where(votes.c.item == c.c.item, live).scalar_subquery()
    lent = leases.c.item == c.c.item, leases.c.annotator != annotator
    n_lent = sa.select(sa.func.count()).where(*lent).scalar_subquery()
    # an open item whose votes are split needs one more person
    split = sa.and_(c.c.position <= last_open, n_votes >= max(2, settings.overlap))
    found = sa.select(c.c.position, c.c.item).where(
        c.c.round == newest,
        ~sa.exists().where(answers.c.item == c.c.item),
        ~sa.exists().where(votes.c.item == c.c.item, votes.c.annotator == annotator, live),
        n_votes + n_lent < sa.case((split, n_votes + 1), else_=settings.overlap),
    )
    if not settings.early_answers:
        found = found.where(c.c.position <= last_open)
    rows = {row.position: row.item for row in connection.execute(found.where(c.c.item.in_(held)))}
    rows |= {row.position: row.item for row in connection.execute(found.order_by(c.c.position).limit(n + len(held)))}
    return [rows[position] for position in sorted(rows)]


def take_over(connection: sa.Connection, annotator: str, n: int, among: AbstractSet[ItemId] | None) -> list[ItemId]:
    """Up to n items lent to whoever holds most, less wanted ones first to go: nobody waits while another has plenty.

    Of m items the holder keeps m // 2 + 1, those their page shows next: a page asks anew when half its items are gone,
    before it comes to the others. What they took back stays theirs. `among` limits the items, None does not.
    """
    newest = connection.execute(sa.select(sa.func.max(rounds.c.round))).scalar()
    mine = sa.exists().where(votes.c.item == leases.c.item, votes.c.annotator == annotator, votes.c.state == LIVE)
    found = (
        sa.select(leases.c.annotator, leases.c.item)
        .join(candidates, sa.and_(candidates.c.item == leases.c.item, candidates.c.round == newest))
        .where(leases.c.annotator != annotator, ~leases.c.first, ~mine)
        .where(~sa.exists().where(answers.c.item == leases.c.item))
        .order_by(candidates.c.position)
    )
    held: dict[str, list[ItemId]] = {}
    for row in connection.execute(found):
        if among is None or row.item in among:
            held.setdefault(row.annotator, []).append(row.item)
    if not held:
        return []
    holder = max(held, key=lambda name: (len(held[name]), name))
    taken = held[holder][len(held[holder]) // 2 + 1 :][:n]
    connection.execute(leases.delete().where(leases.c.annotator == holder, leases.c.item.in_(taken)))
    return taken
