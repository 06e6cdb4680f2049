"""Which items can be lent to a person now, and what is taken over from those who hold many."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import sqlalchemy as sa

from mqnet.store.project import Project
from mqnet.store.tables import answers, candidates, leases, rounds, votes, worker
from mqnet.types import ItemId, Query

LIVE = "live"
FAR = 2**62
"""Behind the last place of every ranking."""

# made once: building these takes longer than running them
_WHO, _NEWEST_ROUND = sa.bindparam("who"), sa.bindparam("newest")
_NEWEST = sa.select(sa.func.max(rounds.c.round))
_STATE = sa.select(worker.c.state)
_PLACE = sa.select(candidates.c.position).where(
    candidates.c.round == _NEWEST_ROUND, candidates.c.item == sa.bindparam("the_item")
)
_C, _LIVE = candidates.alias(), votes.c.state == LIVE
_N_VOTES = sa.select(sa.func.count()).where(votes.c.item == _C.c.item, _LIVE).scalar_subquery()
_LENT = leases.c.item == _C.c.item, leases.c.annotator != _WHO
_N_LENT = sa.select(sa.func.count()).where(*_LENT).scalar_subquery()
# an open item whose votes are split needs one more person
_SPLIT = sa.and_(_C.c.position <= sa.bindparam("last_open"), sa.bindparam("enough") <= _N_VOTES)
_FOUND = (
    sa.select(_C.c.position, _C.c.item)
    .where(_C.c.round == _NEWEST_ROUND, _C.c.position <= sa.bindparam("last"))
    .where(~sa.exists().where(answers.c.item == _C.c.item))
    .where(~sa.exists().where(votes.c.item == _C.c.item, votes.c.annotator == _WHO, _LIVE))
    .where(sa.case((_SPLIT, _N_VOTES + 1), else_=sa.bindparam("overlap", type_=sa.Integer)) > _N_VOTES + _N_LENT)
)
_LENDABLE = _FOUND.order_by(_C.c.position).limit(sa.bindparam("most"))
_MINE = sa.exists().where(votes.c.item == leases.c.item, votes.c.annotator == _WHO, _LIVE)
_OTHERS_HOLD = (
    sa.select(leases.c.annotator, leases.c.item)
    .join(candidates, sa.and_(candidates.c.item == leases.c.item, candidates.c.round == _NEWEST_ROUND))
    .where(leases.c.annotator != _WHO, ~leases.c.first, ~_MINE)
    .where(~sa.exists().where(answers.c.item == leases.c.item))
    .order_by(candidates.c.position)
)
_OF_HELD = _FOUND.where(_C.c.item.in_(sa.bindparam("held", expanding=True)))


def lendable(
    connection: sa.Connection, settings: Project, query: Query | None, annotator: str, n: int, held: list[ItemId]
) -> list[ItemId]:
    """What may be lent to this person, in the order of the newest ranking: what they hold, and the best n others.

    Neither bought, nor answered by them, nor taken by as many others as are wanted.
    """
    newest = connection.execute(_NEWEST).scalar()
    if newest is None:
        return []
    if query is None and (not settings.early_answers or connection.execute(_STATE).scalar() == "done"):
        return []
    last_open = -1
    if query is not None and query.items:
        last_open = connection.execute(_PLACE, {"newest": newest, "the_item": query.items[-1]}).scalar_one()
    asked: dict[str, object] = {"who": annotator, "newest": newest, "last_open": last_open}
    asked |= {"last": FAR if settings.early_answers else last_open}
    asked |= {"enough": max(2, settings.overlap), "overlap": settings.overlap}
    rows = {row.position: row.item for row in connection.execute(_LENDABLE, {**asked, "most": n + len(held)})}
    if held:
        rows |= {row.position: row.item for row in connection.execute(_OF_HELD, {**asked, "held": held})}
    return [rows[position] for position in sorted(rows)]


def take_over(connection: sa.Connection, annotator: str, n: int, among: AbstractSet[ItemId] | None) -> list[ItemId]:
    """Up to n items lent to whoever holds most, less wanted ones first to go: nobody waits while another has plenty.

    Of m items the holder keeps m // 2 + 1, those their page shows next: a page asks anew when half its items are gone,
    before it comes to the others. What they took back stays theirs. `among` limits the items, None does not.
    """
    newest = connection.execute(_NEWEST).scalar()
    held: dict[str, list[ItemId]] = {}
    for row in connection.execute(_OTHERS_HOLD, {"who": annotator, "newest": newest}):
        if among is None or row.item in among:
            held.setdefault(row.annotator, []).append(row.item)
    if not held:
        return []
    holder = max(held, key=lambda name: (len(held[name]), name))
    taken = held[holder][len(held[holder]) // 2 + 1 :][:n]
    connection.execute(leases.delete().where(leases.c.annotator == holder, leases.c.item.in_(taken)))
    return taken
