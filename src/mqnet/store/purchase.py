"""Buying labels: which items may be answered now, and the ledger lines their answers become. One transaction's work."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from mqnet.errors import AnswerError
from mqnet.store.codec import costs_from
from mqnet.store.ledger import answer_columns, charged, sure_labels
from mqnet.store.standing import Standing
from mqnet.store.tables import answer_log, answers, candidates, rounds
from mqnet.types import Answer, CampaignConfig, Costs, ItemId, Query, as_answer

REQUEUED, WITHDRAWN = "requeued", "withdrawn"
"""Kinds of log entries that take an answer out of the ledger."""
AHEAD = 50
"""How many unanswered items are read beyond the open ones where a transaction buys several times."""

# made once: at every answer, building a statement takes longer than running it
_ROUND, _ITEMS = sa.bindparam("round_"), sa.bindparam("given", expanding=True)
_OPEN_ROUND = sa.select(rounds.c.round, rounds.c.budget, rounds.c.costs).where(~rounds.c.closed)
_COSTS_OF = sa.select(rounds.c.costs).where(rounds.c.round == _ROUND)
_PAID = sa.select(answers.c.cost, sa.func.count()).where(answers.c.round == _ROUND).group_by(answers.c.cost)
_UNANSWERED = (
    sa.select(candidates.c.item)
    .where(candidates.c.round == _ROUND)
    .where(~sa.exists().where(answers.c.item == candidates.c.item, answers.c.round == _ROUND))
    .order_by(candidates.c.position)
    .limit(sa.bindparam("most"))
)
_ANSWERED = sa.select(answers).where(answers.c.item.in_(_ITEMS))
_PLACES = sa.select(candidates.c.item, candidates.c.position, candidates.c.audit).where(
    candidates.c.round == _ROUND, candidates.c.item.in_(_ITEMS)
)
_BUY, _LOG = answers.insert(), answer_log.insert()


def _by_cost(table: sa.Table):
    return sa.select(table.c.round, table.c.cost, sa.func.count().label("n")).group_by(table.c.round, table.c.cost)


_SPENT, _KEPT = _by_cost(answers), _by_cost(answer_log).where(answer_log.c.kind == REQUEUED)


def take(
    connection: sa.Connection,
    config: CampaignConfig,
    given: Mapping[ItemId, Answer | str],
    annotator: str,
    standing: Standing | None = None,
) -> None:
    """Write answers to the ledger, all or none: to offered items, or corrections; a repetition changes nothing.

    `standing` is that of the open round where the caller has read it; it is kept true, or says that it is stale.
    """
    if standing is None or standing.stale:
        standing = standing_in(connection, config)
    query = standing.query if standing else None
    open_items = frozenset(query.items) if query else frozenset[ItemId]()
    old = _answered(connection, list(given))
    places = _places(connection, query.round, list(given)) if query else {}
    touched = {round_ for round_, *_ in old.values()} | ({query.round} if query else set[int]())
    charges = {
        round_: standing.charges if standing and standing.round == round_ else _charges(connection, config, round_)
        for round_ in touched
    }
    bought: dict[ItemId, float] = {}
    new: list[dict[str, object]] = []
    log: list[dict[str, object]] = []
    for item, value in given.items():
        answer = as_answer(value, config.classes, item)
        kind, name = answer_columns(answer)
        row: dict[str, object] = {"item": item, "kind": kind, "name": name, "annotator": annotator}
        row["answered_at"] = time.time()
        if item in old:
            round_, *answered = old[item]
            if answered == [kind, name]:
                continue
            row |= {"round": round_, "cost": float(charges[round_].of(answer))}
            connection.execute(answers.update().where(answers.c.item == item).values(**row))
            if standing is not None:
                standing.stale = True
        elif query is not None and item in open_items:
            bought[item] = float(charges[query.round].of(answer))
            row |= {"round": query.round, "cost": bought[item]}
            position, audit = places[item]
            new.append({**row, "position": position, "audit": audit})
        else:
            raise AnswerError(_not_asked(item, query))
        log.append(row)
    if new:
        connection.execute(_BUY, new)
    if log:
        connection.execute(_LOG, log)
    if standing is not None:
        for item in bought:
            standing.bought(item, bought[item])


def ranking_of(connection: sa.Connection, round_: int, n: int | None = None) -> list[ItemId]:
    """The ranking of a round, best first; its first n items."""
    query = sa.select(candidates.c.item).where(candidates.c.round == round_).order_by(candidates.c.position)
    return list(connection.execute(query.limit(n)).scalars().all())


def _answered(connection: sa.Connection, items: Sequence[ItemId]) -> dict[ItemId, tuple[int, str, str | None]]:
    """The round, kind and class of those items that have an answer, asked for in pieces that every database takes."""
    out: dict[ItemId, tuple[int, str, str | None]] = {}
    for start in range(0, len(items), 500):
        found = connection.execute(_ANSWERED, {"given": items[start : start + 500]})
        out |= {r.item: (r.round, r.kind, r.name) for r in found}
    return out


def _places(connection: sa.Connection, round_: int, items: Sequence[ItemId]) -> dict[ItemId, tuple[int, bool]]:
    """Where these items stand in a round's ranking, and whether the audit drew them."""
    out: dict[ItemId, tuple[int, bool]] = {}
    for start in range(0, len(items), 500):
        found = connection.execute(_PLACES, {"round_": round_, "given": items[start : start + 500]})
        out |= {r.item: (r.position, r.audit) for r in found}
    return out


def _charges(connection: sa.Connection, config: CampaignConfig, round_: int) -> Costs:
    text = connection.execute(_COSTS_OF, {"round_": round_}).scalar_one()
    return charged(config, costs_from(text))


def open_query(connection: sa.Connection, config: CampaignConfig) -> Query | None:
    """The items that may be answered now, none when the round awaits its closing; None when no round is open."""
    standing = standing_in(connection, config, ahead=0)
    return None if standing is None else standing.query


def standing_in(connection: sa.Connection, config: CampaignConfig, ahead: int = AHEAD) -> Standing | None:
    """The open round as this transaction sees it; None when there is none."""
    row = connection.execute(_OPEN_ROUND).first()
    if row is None:
        return None
    paid = connection.execute(_PAID, {"round_": row.round}).all()
    costs = Counter({row[0]: row[1] for row in paid})
    charges = charged(config, costs_from(row.costs))
    covered = covers(connection, config, row.round, row.budget, charges)
    # rankings are long and this is asked at every answer: what lies further down cannot be open
    left = covered - math.fsum(n * cost for cost, n in costs.items())
    most = sure_labels(left, charges) + ahead
    found = connection.execute(_UNANSWERED, {"round_": row.round, "most": most}).scalars().all()
    return Standing(row.round, covered, charges, costs, list(found), whole=len(found) < most)


def covers(connection: sa.Connection, config: CampaignConfig, round_: int, budget: float, charges: Costs) -> float:
    """What the answers of an open round may cost together, given its budget and what it charges.

    A skip that was queued again stays charged. A correction of an earlier answer may have made dearer what was counted
    when the round began: what the other rounds leave of the total budget is a bound of its own.
    """
    # the log is long and this is asked at every answer: it is not read where skips are free
    kept = _spent(connection, _KEPT).get(round_, 0.0) if charges.skip else 0.0
    if config.budget.total is None:
        return budget - kept
    others = math.fsum(cost for other, cost in spent_by_round(connection).items() if other != round_)
    return min(budget, config.budget.total - others) - kept


def spent_by_round(connection: sa.Connection) -> dict[int, float]:
    """What each round has cost: its answers as they stand, and its skips that were queued again."""
    found = _spent(connection, _SPENT), _spent(connection, _KEPT)
    return {round_: math.fsum(one.get(round_, 0.0) for one in found) for round_ in sorted({*found[0], *found[1]})}


def _spent(connection: sa.Connection, query: sa.Executable) -> dict[int, float]:
    # equal costs are counted, not added up: thousands of tenths would drift from the budget they were priced for
    found: dict[int, list[float]] = {}
    for row in connection.execute(query).all():
        found.setdefault(row.round, []).append(row.n * row.cost)
    return {round_: math.fsum(costs) for round_, costs in found.items()}


def requeue(connection: sa.Connection, items: Sequence[ItemId]) -> None:
    """Take skips out of the ledger, all or none; what they were charged stays with the log line that says so."""
    for item in items:
        old = connection.execute(sa.select(answers).where(answers.c.item == item)).mappings().first()
        if old is None or old["kind"] != "skip":
            raise AnswerError(f"item '{item}' was not skipped: only skipped items can be queued again.")
        row = {name: old[name] for name in ("item", "round", "annotator", "cost")}
        row |= {"kind": REQUEUED, "name": None, "answered_at": time.time()}
        connection.execute(answer_log.insert().values(**row))
        connection.execute(answers.delete().where(answers.c.item == item))


def _not_asked(item: ItemId, query: Query | None) -> str:
    if query is None:
        return f"item '{item}' was never asked, and no round is open. ask() starts the next one."
    return f"item '{item}' is not open in round {query.round}; ask() returns the open query."


def withdraw(connection: sa.Connection, item: ItemId) -> None:
    """Take an answer out of the ledger: its item is open again. The log keeps what was."""
    old = connection.execute(sa.select(answers).where(answers.c.item == item)).mappings().one()
    row = {name: old[name] for name in ("item", "round", "annotator")}
    row |= {"kind": WITHDRAWN, "name": None, "cost": 0.0, "answered_at": time.time()}
    connection.execute(answer_log.insert().values(**row))
    connection.execute(answers.delete().where(answers.c.item == item))
