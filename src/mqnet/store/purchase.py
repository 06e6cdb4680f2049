"""Buying labels: which items may be answered now, and the ledger lines their answers become. One transaction's work."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from mqnet.errors import AnswerError
from mqnet.store.ledger import answer_columns, offered
from mqnet.store.tables import answer_log, answers, candidates, rounds
from mqnet.types import Answer, CampaignConfig, ItemId, Query, as_answer


def take(
    connection: sa.Connection, config: CampaignConfig, given: Mapping[ItemId, Answer | str], annotator: str
) -> None:
    """Write answers to the ledger, all or none: to offered items, or corrections; a repetition changes nothing."""
    query = open_query(connection, config)
    open_items = frozenset(query.items) if query else frozenset[ItemId]()
    old = _answered(connection, list(given))
    places = _places(connection, query.round, list(given)) if query else {}
    new: list[dict[str, object]] = []
    log: list[dict[str, object]] = []
    for item, value in given.items():
        answer = as_answer(value, config.classes, item)
        kind, name = answer_columns(answer)
        row: dict[str, object] = {"item": item, "kind": kind, "name": name, "annotator": annotator}
        row |= {"cost": float(config.costs.of(answer)), "answered_at": time.time()}
        if item in old:
            round_, *answered = old[item]
            if answered == [kind, name]:
                continue
            row["round"] = round_
            connection.execute(answers.update().where(answers.c.item == item).values(**row))
        elif query is not None and item in open_items:
            row["round"] = query.round
            new.append({**row, "position": places[item]})
        else:
            raise AnswerError(_not_asked(item, query))
        log.append(row)
    if new:
        connection.execute(answers.insert(), new)
    if log:
        connection.execute(answer_log.insert(), log)


def ranking_of(connection: sa.Connection, round_: int) -> list[ItemId]:
    """The ranking of a round, best first."""
    query = sa.select(candidates.c.item).where(candidates.c.round == round_).order_by(candidates.c.position)
    return list(connection.execute(query).scalars())


def _answered(connection: sa.Connection, items: Sequence[ItemId]) -> dict[ItemId, tuple[int, str, str | None]]:
    """The round, kind and class of those items that have an answer, asked for in pieces that every database takes."""
    out: dict[ItemId, tuple[int, str, str | None]] = {}
    for start in range(0, len(items), 500):
        query = sa.select(answers).where(answers.c.item.in_(items[start : start + 500]))
        out |= {r.item: (r.round, r.kind, r.name) for r in connection.execute(query)}
    return out


def _places(connection: sa.Connection, round_: int, items: Sequence[ItemId]) -> dict[ItemId, int]:
    """Where these items stand in a round's ranking."""
    out: dict[ItemId, int] = {}
    for start in range(0, len(items), 500):
        query = sa.select(candidates.c.item, candidates.c.position).where(
            candidates.c.round == round_, candidates.c.item.in_(items[start : start + 500])
        )
        out |= {r.item: r.position for r in connection.execute(query)}
    return out


def open_query(connection: sa.Connection, config: CampaignConfig) -> Query | None:
    """The items that may be answered now, none when the round awaits its closing; None when no round is open."""
    row = connection.execute(sa.select(rounds.c.round, rounds.c.budget).where(~rounds.c.closed)).first()
    if row is None:
        return None
    query = sa.select(answers.c.item, answers.c.cost).where(answers.c.round == row.round)
    answered = {r.item: r.cost for r in connection.execute(query)}
    return Query(row.round, offered(ranking_of(connection, row.round), answered, row.budget, config.costs))


def _not_asked(item: ItemId, query: Query | None) -> str:
    if query is None:
        return f"item '{item}' was never asked, and no round is open. ask() starts the next one."
    return f"item '{item}' is not open in round {query.round}; ask() returns the open query."


def withdraw(connection: sa.Connection, item: ItemId) -> None:
    """Take an answer out of the ledger: its item is open again. The log keeps what was."""
    old = connection.execute(sa.select(answers).where(answers.c.item == item)).mappings().one()
    row = {name: old[name] for name in ("item", "round", "annotator")}
    row |= {"kind": "withdrawn", "name": None, "cost": 0.0, "answered_at": time.time()}
    connection.execute(answer_log.insert().values(**row))
    connection.execute(answers.delete().where(answers.c.item == item))
