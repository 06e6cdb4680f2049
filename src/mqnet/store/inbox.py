"""What people answer: items are lent to them, their votes kept, and what votes come to is bought.

Every call is one short transaction, durable when it returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from mqnet.errors import AnswerError, InputError
from mqnet.store.campaign import CampaignStore
from mqnet.store.consensus import REVIEW, Vote, decide
from mqnet.store.ledger import answer_columns, answer_from
from mqnet.store.lending import LIVE, lendable, take_over
from mqnet.store.project import Project, read_project
from mqnet.store.purchase import open_query, standing_in, take, withdraw
from mqnet.store.standing import Standing
from mqnet.store.tables import answers, candidates, flags, items, leases, rounds, votes
from mqnet.types import Answer, ItemId, Query, as_answer

VIEWS = ("focus", "grid", REVIEW)
REPLACED, WITHDRAWN = "replaced", "withdrawn"

# made once: at every answer, building a statement takes longer than running it
_ITEM, _WHO, _ITEMS = sa.bindparam("the_item"), sa.bindparam("who"), sa.bindparam("given", expanding=True)
_LINE = sa.select(answers).where(answers.c.item == _ITEM)
_BY_KEY = sa.select(votes.c.item, votes.c.annotator, votes.c.round).where(votes.c.key == sa.bindparam("the_key"))
_VOTES_OF = sa.select(votes).where(votes.c.item == _ITEM, votes.c.state == LIVE).order_by(votes.c.seq)
_THEIRS = votes.c.item == _ITEM, votes.c.annotator == _WHO, votes.c.state == LIVE
_HAS_ANSWERED = sa.select(sa.exists().where(*_THEIRS))
_REPLACE = votes.update().where(*_THEIRS).values(state=REPLACED)
_CAST = votes.insert()
_IS_RANKED = sa.select(sa.exists().where(candidates.c.item == _ITEM))
# a walk back through one's answers starts anew
_WALK_ENDS = votes.update().where(votes.c.annotator == _WHO, votes.c.returned).values(returned=False)
_RELEASE = leases.delete().where(leases.c.annotator == _WHO, leases.c.item.in_(_ITEMS))
_RELEASE_ALL = leases.delete().where(leases.c.annotator == _WHO)
_EXPIRE = leases.delete().where(leases.c.until <= sa.bindparam("now"))
_HELD = sa.select(leases.c.item, leases.c.first).where(leases.c.annotator == _WHO)
_LEND = leases.insert()


class NotOpenError(AnswerError):
    """The item cannot be answered now, or there is nothing to take back."""


class UnknownItemError(AnswerError):
    """The item is not part of this campaign."""


@dataclass(frozen=True)
class Offer:
    """An item lent to somebody; `early` when no query has asked for it yet."""

    item: ItemId
    early: bool


@dataclass(frozen=True)
class Given:
    """An answer as it comes from a page: `key` is made there, and a repetition of it changes nothing."""

    item: ItemId
    answer: Answer | str
    key: str
    seconds: float | None = None
    view: str = "focus"


@dataclass(frozen=True)
class Receipt:
    """What became of an answer: kept for a later query (`early`), and whether its item is in the ledger (`charged`)."""

    item: ItemId
    key: str
    early: bool
    charged: bool


@dataclass(frozen=True)
class Undone:
    """An answer taken back; not `withdrawn` when its round is closed and it stands until replaced."""

    item: ItemId
    answer: Answer
    withdrawn: bool
    early: bool


class Inbox:
    """The answers of a campaign's people."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store

    # -- lending -------------------------------------------------------------------------------------------------------

    def next(self, annotator: str, n: int) -> list[Offer]:
        """Up to n items for this person to answer, lent until the lease ends: theirs first, then the most wanted.

        With none left to lend, part of what the one who holds most has not come to yet is theirs instead.
        """
        now = time.time()
        with self._store.answering() as (connection, standing):
            settings, query = settings_in(connection), standing.query if standing else None
            connection.execute(_EXPIRE, {"now": now})
            open_items = frozenset(query.items) if query else frozenset[ItemId]()
            held = {row.item: row.first for row in connection.execute(_HELD, {"who": annotator})}
            free = lendable(connection, settings, query, annotator, n, list(held))
            # taken back first, then asked before early, lent before new; each in the order of the ranking
            order = {item: i for i, item in enumerate(free)}
            chosen = sorted(
                (item for item in free if item in open_items or settings.early_answers),
                key=lambda item: (not held.get(item), item not in open_items, item not in held, order[item]),
            )[:n]
            if not chosen:
                chosen = take_over(connection, annotator, n, None if settings.early_answers else open_items)
            connection.execute(_RELEASE_ALL, {"who": annotator})
            rows = [
                {"item": i, "annotator": annotator, "until": now + settings.lease_seconds, "first": held.get(i, False)}
                for i in chosen
            ]
            if rows:
                connection.execute(_LEND, rows)
            return [Offer(item, item not in open_items) for item in chosen]

    # -- answering -----------------------------------------------------------------------------------------------------

    def submit(self, annotator: str, given: Sequence[Given]) -> list[Receipt]:
        """Take somebody's answers, all or none; a second answer to an item replaces their first."""
        with self._store.answering() as (connection, standing):
            config = self._store.config_in(connection)
            settings, query = settings_in(connection), standing.query if standing else None
            for one in given:
                answer = as_answer(one.answer, config.classes, one.item)
                if one.view not in VIEWS:
                    raise InputError(f"item '{one.item}': '{one.view}' is no view. Views: {', '.join(VIEWS)}.")
                if _repeated(connection, annotator, one):
                    continue
                round_ = _round_of(connection, settings, query, annotator, one.item)
                connection.execute(_REPLACE, {"the_item": one.item, "who": annotator})
                kind, name = answer_columns(answer)
                row = {"item": one.item, "round": round_, "annotator": annotator, "kind": kind, "name": name}
                row |= {"seconds": one.seconds, "view": one.view, "key": one.key, "state": LIVE, "returned": False}
                connection.execute(_CAST, {**row, "answered_at": time.time()})
            answered = sorted({one.item for one in given})
            connection.execute(_RELEASE, {"who": annotator, "given": answered})
            connection.execute(_WALK_ENDS, {"who": annotator})
            self._settle(connection, settings, standing, answered)
            return _receipts(connection, given)

    def settle(self) -> None:
        """Buy what is open and answered already: early answers to items that a query has asked for since."""
        with self._store.writing() as connection:
            settings, config = settings_in(connection), self._store.config_in(connection)
            while (standing := standing_in(connection, config)) is not None:
                answered = sa.select(votes.c.item).distinct().where(votes.c.state == LIVE)
                waiting = set(
                    connection.execute(answered.where(votes.c.item.not_in(sa.select(answers.c.item)))).scalars()
                )
                # bought items may make room for more: again until nothing is
                if not self._settle(connection, settings, standing, [i for i in standing.query.items if i in waiting]):
                    return

    def _settle(
        self, connection: sa.Connection, settings: Project, standing: Standing | None, answered: Iterable[ItemId]
    ) -> int:
        """Write what the items' votes come to into the ledger; returns how many lines changed."""
        config = self._store.config_in(connection)
        open_items = frozenset(standing.query.items) if standing else frozenset[ItemId]()
        bought: dict[tuple[bool, str], dict[ItemId, Answer]] = {}
        for item in answered:
            cast = votes_of(connection, item)
            answer = decide(cast, settings.overlap)
            line = _line(connection, item)
            if answer is None or (line is None and item not in open_items):
                continue
            if line is not None and (line.kind, line.name) == answer_columns(answer):
                continue
            reviewed = [vote for vote in cast if vote.view == REVIEW][-1:]
            who = ", ".join(vote.annotator for vote in reviewed or cast if vote.answer == answer)
            bought.setdefault((line is not None, who), {})[item] = answer
        # corrections last: they may use up what an open item was promised
        for (_, who), lines in sorted(bought.items(), key=lambda pair: pair[0]):
            take(connection, config, lines, who, standing)
        return sum(map(len, bought.values()))

    # -- taking back ---------------------------------------------------------------------------------------------------

    def undo(self, annotator: str) -> Undone:
        """Take back somebody's last answer; again goes further back.

        While its round is open the answer is withdrawn: the ledger line goes, and the item is theirs first. In a closed
        round it stands until they answer again.
        """
        with self._store.writing() as connection:
            settings, config = settings_in(connection), self._store.config_in(connection)
            mine = votes.c.annotator == annotator, votes.c.state == LIVE, ~votes.c.returned
            last = connection.execute(sa.select(votes).where(*mine).order_by(votes.c.seq.desc()).limit(1)).first()
            if last is None:
                raise NotOpenError("there is no answer of yours left to take back.")
            answer = answer_from(last.kind, last.name)
            line = _line(connection, last.item)
            if (
                line is not None
                and connection.execute(sa.select(rounds.c.closed).where(rounds.c.round == line.round)).scalar_one()
            ):
                connection.execute(votes.update().where(votes.c.seq == last.seq).values(returned=True))
                return Undone(last.item, answer, withdrawn=False, early=False)
            connection.execute(votes.update().where(votes.c.seq == last.seq).values(state=WITHDRAWN))
            if line is not None:
                if decide(votes_of(connection, last.item), settings.overlap) is not None:
                    self._settle(connection, settings, None, [last.item])
                elif annotator in line.annotator.split(", "):
                    withdraw(connection, last.item)
            connection.execute(leases.delete().where(leases.c.annotator == annotator, leases.c.item == last.item))
            until = time.time() + settings.lease_seconds
            row = {"item": last.item, "annotator": annotator, "until": until, "first": True}
            connection.execute(leases.insert().values(**row))
            query = open_query(connection, config)
            return Undone(last.item, answer, True, query is None or last.item not in query.items)

    def knows(self, item: ItemId) -> bool:
        """Whether this is an item of the campaign."""
        with self._store.reading() as connection:
            return bool(_knows(connection, item))

    def flag(self, annotator: str, item: ItemId, flagged: bool, note: str = "") -> None:
        """Mark an item for the owner to look at, or take the mark away."""
        with self._store.writing() as connection:
            connection.execute(flags.delete().where(flags.c.item == item, flags.c.annotator == annotator))
            if flagged:
                row = {"item": item, "annotator": annotator, "note": note, "flagged_at": time.time()}
                connection.execute(flags.insert().values(**row))


def _knows(connection: sa.Connection, item: ItemId) -> bool:
    shown, ranked = sa.exists().where(items.c.item == item), sa.exists().where(candidates.c.item == item)
    return connection.execute(sa.select(sa.or_(shown, ranked))).scalar_one()


def votes_of(connection: sa.Connection, item: ItemId) -> list[Vote]:
    """The live votes on an item, oldest first."""
    return [as_vote(row) for row in connection.execute(_VOTES_OF, {"the_item": item})]


def as_vote(row: sa.Row[tuple[object, ...]]) -> Vote:
    """A row of the votes' table as a vote."""
    return Vote(row.item, row.annotator, answer_from(row.kind, row.name), row.view, row.answered_at)


def settings_in(connection: sa.Connection) -> Project:
    """The project's settings, or the defaults for a campaign that is none."""
    return read_project(connection) or Project(name="", kind="vector", root=None, encoder=None, vectors="")


def _line(connection: sa.Connection, item: ItemId) -> sa.Row[tuple[object, ...]] | None:
    return connection.execute(_LINE, {"the_item": item}).first()


def _repeated(connection: sa.Connection, annotator: str, one: Given) -> bool:
    """Whether this very answer came before; a key that came with another item or from somebody else is refused."""
    row = connection.execute(_BY_KEY, {"the_key": one.key}).first()
    if row is not None and (row.item, row.annotator) != (one.item, annotator):
        raise InputError(f"item '{one.item}': the key '{one.key}' was used for another answer. Make a new one.")
    return row is not None


def _round_of(
    connection: sa.Connection, settings: Project, query: Query | None, annotator: str, item: ItemId
) -> int | None:
    """The round an answer to this item belongs to, None for an early one; an item nobody may answer is refused."""
    line = _line(connection, item)
    if line is not None:
        return line.round
    if query is not None and item in query.items:
        return query.round
    if connection.execute(_HAS_ANSWERED, {"the_item": item, "who": annotator}).scalar_one():
        return None
    if settings.early_answers and connection.execute(_IS_RANKED, {"the_item": item}).scalar_one():
        return None
    if not _knows(connection, item):
        raise UnknownItemError(f"item '{item}' is not part of this campaign.")
    raise NotOpenError(f"item '{item}' is not open: it was not asked, or its round is over.")


def _receipts(connection: sa.Connection, given: Sequence[Given]) -> list[Receipt]:
    out: list[Receipt] = []
    for one in given:
        round_ = connection.execute(_BY_KEY, {"the_key": one.key}).one().round
        charged = _line(connection, one.item) is not None
        out.append(Receipt(one.item, one.key, round_ is None and not charged, charged))
    return out
