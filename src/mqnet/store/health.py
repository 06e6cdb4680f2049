"""What the loop says of itself, for those who wait for it: its state, its heartbeat, its insights."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from mqnet.store.campaign import CampaignStore
from mqnet.store.tables import answer_log, insights, votes, worker

ALIVE_SECONDS = 10.0
"""A worker that was not heard of for this long is taken for dead; it beats every two."""


@dataclass(frozen=True)
class WorkerState:
    """The last word of the loop: 'starting', 'asking', 'training', 'done' or 'stopped', and since when."""

    state: str
    message: str = ""
    round: int | None = None
    since: float = 0.0
    heartbeat: float = 0.0

    def alive(self, now: float | None = None) -> bool:
        """Whether it was heard of lately and did not say goodbye."""
        return self.state != "stopped" and (now or time.time()) - self.heartbeat < ALIVE_SECONDS


_WORKER = sa.select(worker)


class Health:
    """The worker's state and insights in a campaign's database."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store

    def say(self, state: str, message: str = "", round_: int | None = None) -> None:
        """Note what the loop does now."""
        now = time.time()
        with self._store.writing() as connection:
            old = connection.execute(sa.select(worker)).first()
            since = old.since if old is not None and (old.state, old.round) == (state, round_) else now
            connection.execute(worker.delete())
            row = {"state": state, "message": message, "round": round_, "since": since, "heartbeat": now}
            connection.execute(worker.insert().values(id=1, **row))

    def beat(self) -> None:
        """Say that the loop is alive."""
        with self._store.writing() as connection:
            connection.execute(worker.update().values(heartbeat=time.time()))

    def worker(self) -> WorkerState | None:
        """The loop's last word, or None when none ever worked here."""
        with self._store.reading() as connection:
            row = connection.execute(_WORKER).first()
        return None if row is None else WorkerState(row.state, row.message, row.round, row.since, row.heartbeat)

    def revision(self) -> tuple[int, int]:
        """Two numbers that change when somebody answered, corrected or took back an answer."""
        with self._store.reading() as connection:
            given = connection.execute(sa.select(sa.func.coalesce(sa.func.max(votes.c.seq), 0))).scalar_one()
            logged = connection.execute(sa.select(sa.func.coalesce(sa.func.max(answer_log.c.seq), 0))).scalar_one()
            return given, logged

    def keep_insight(self, round_: int, found: Mapping[str, object]) -> None:
        """Keep what was found out about a round, in place of an earlier one."""
        row = {"round": round_, "data": json.dumps(found, ensure_ascii=False, allow_nan=False)}
        with self._store.writing() as connection:
            connection.execute(insights.delete().where(insights.c.round == round_))
            connection.execute(insights.insert().values(**row, created_at=time.time()))

    def insight(self, round_: int | None = None) -> dict[str, object] | None:
        """What was found out about a round, by default the last one with an insight."""
        query = sa.select(insights.c.data).order_by(insights.c.round.desc()).limit(1)
        if round_ is not None:
            query = query.where(insights.c.round == round_)
        with self._store.reading() as connection:
            text = connection.execute(query).scalar()
        return None if text is None else json.loads(text)
