"""The ledger as it once stood, from the log of all answers."""

from __future__ import annotations

import sqlalchemy as sa

from mqnet.store.ledger import answer_from
from mqnet.store.purchase import REQUEUED, WITHDRAWN
from mqnet.store.tables import answer_log, candidates
from mqnet.types import LedgerLine


def log_length(connection: sa.Connection) -> int:
    """The number of the newest entry of the log, 0 before the first."""
    return connection.execute(sa.select(sa.func.max(answer_log.c.seq))).scalar() or 0


def ledger_at(connection: sa.Connection, seen: int) -> list[LedgerLine]:
    """The ledger as it stood after the log's entry number `seen`, in the order of purchase."""
    log, ranked = answer_log.c, candidates.c
    newest = sa.select(sa.func.max(log.seq)).where(log.seq <= seen).group_by(log.item)
    query = (
        sa.select(answer_log, ranked.position, ranked.audit)
        .join(candidates, (ranked.round == log.round) & (ranked.item == log.item))
        .where(log.seq.in_(newest), log.kind.not_in((REQUEUED, WITHDRAWN)))
        .order_by(log.round, ranked.position)
    )
    return [
        LedgerLine(r.round, r.position, r.item, answer_from(r.kind, r.name), r.cost, r.annotator, r.audit)
        for r in connection.execute(query)
    ]
