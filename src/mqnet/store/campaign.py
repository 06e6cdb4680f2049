"""One campaign's records: short transactions, each durable when it returns."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from mqnet.errors import StoreError
from mqnet.store import schema
from mqnet.store.blobs import Blobs, FolderBlobs, MemoryBlobs, make_folder, sync_folder
from mqnet.store.codec import costs_from, from_json, to_json
from mqnet.store.items import Item, add_items, find_items
from mqnet.store.ledger import answer_from, charged
from mqnet.store.past import ledger_at, log_length
from mqnet.store.project import Project, read_project, write_project
from mqnet.store.purchase import covers, open_query, ranking_of, requeue, spent_by_round, standing_in, take
from mqnet.store.standing import Standing
from mqnet.store.tables import answer_log, answers, campaign, candidates, rounds
from mqnet.types import Answer, CampaignConfig, Costs, ItemId, LedgerLine, Query

DATABASE = "campaign.db"


@dataclass(frozen=True)
class RoundRecord:
    """What is stored of a round: its budget, costs as measured, the digests of its arrays and its measurements.

    `answers_seen` is the newest entry of the log of answers when it was ranked.
    """

    round: int
    budget: float
    costs: Costs | None = None
    closed: bool = False
    state_before: str | None = None
    snapshot: str | None = None
    state_after: str | None = None
    model: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    answers_seen: int | None = None


class _Together(threading.local):
    """What a thread's writes share for a while: a transaction, and the open round as it was read there."""

    connection: sa.Connection | None = None
    has_read: bool = False
    standing: Standing | None = None

    def forget(self) -> None:
        """Read the open round anew when it is asked for."""
        self.has_read, self.standing = False, None


class CampaignStore:
    """A campaign's database and arrays, in a folder or in memory."""

    def __init__(self, engine: sa.Engine, blobs: Blobs, folder: Path | None) -> None:
        self._engine = engine
        self.blobs = blobs
        self.folder = folder
        self._config: CampaignConfig | None = None
        self._together = _Together()

    @classmethod
    def create(cls, folder: Path | None, config: CampaignConfig, pool: Mapping[str, object]) -> CampaignStore:
        """A new campaign; a folder that holds one already is refused."""
        config.check()
        if folder is None:
            store = cls(schema.connect(None), MemoryBlobs(), None)
            store._fill(config, pool)
            return store
        if (folder / DATABASE).exists():
            raise StoreError(f"'{folder}' holds a campaign already. Open it, or choose another folder.")
        # built under another name and renamed: a crash in between leaves no half campaign behind
        make_folder(folder)
        building = folder / f".{DATABASE}.new"
        for leftover in folder.glob(f".{DATABASE}.new*"):
            leftover.unlink()
        store = cls(schema.connect(building), FolderBlobs(folder / "arrays"), folder)
        try:
            with _disk_errors(folder):
                store._fill(config, pool)
                with store._engine.connect() as connection:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            store.close()
        building.rename(folder / DATABASE)
        sync_folder(folder)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> CampaignStore:
        """The campaign of a folder, migrated to the current schema."""
        if not (folder / DATABASE).is_file():
            raise StoreError(f"'{folder}' holds no campaign: there is no {DATABASE} in it.")
        engine = schema.connect(folder / DATABASE)
        try:
            schema.migrate(engine, str(folder))
        except exc.DatabaseError as error:
            engine.dispose()
            raise StoreError(f"'{folder / DATABASE}' is not a readable database: {error.orig}.") from error
        except StoreError:
            engine.dispose()
            raise
        return cls(engine, FolderBlobs(folder / "arrays"), folder)

    def close(self) -> None:
        """Give the database connection back."""
        self._engine.dispose()

    def _fill(self, config: CampaignConfig, pool: Mapping[str, object]) -> None:
        schema.create(self._engine)
        with self._write() as connection:
            row = {"id": 1, "config": to_json(config), "pool": json.dumps(dict(pool)), "created_at": time.time()}
            connection.execute(campaign.insert().values(**row))

    @contextmanager
    def _write(self) -> Generator[sa.Connection]:
        if self._together.connection is not None:
            self._together.forget()  # who writes here does not keep up what was read
            with self._together.connection.begin_nested():
                yield self._together.connection
            return
        with _disk_errors(self.folder), self._engine.execution_options(write=True).begin() as connection:
            yield connection

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that may write, durable when it ends well: for the rooms of the store beside this one."""
        return self._write()

    @contextmanager
    def answering(self) -> Generator[tuple[sa.Connection, Standing | None]]:
        """A transaction that may write, and the open round in it, which whoever uses this keeps true by `take`.

        Those of one `together` share a reading of it.
        """
        shared = self._together
        if shared.connection is None:
            with self._write() as connection:
                yield connection, standing_in(connection, self.config_in(connection))
            return
        try:
            with shared.connection.begin_nested():
                yield shared.connection, self._shared_standing(shared.connection)
        except BaseException:
            shared.forget()  # it may have followed what was taken back
            raise

    def _shared_standing(self, connection: sa.Connection) -> Standing | None:
        shared = self._together
        if not shared.has_read or (shared.standing is not None and shared.standing.stale):
            shared.standing = standing_in(connection, self.config_in(connection))
            shared.has_read = True
        return shared.standing

    def open_query_in(self, connection: sa.Connection) -> Query | None:
        """The items that may be answered now; None when no round is open."""
        if connection is not self._together.connection:
            return open_query(connection, self.config_in(connection))
        standing = self._shared_standing(connection)
        return None if standing is None else standing.query

    @contextmanager
    def together(self) -> Generator[None]:
        """One transaction for all that this thread writes meanwhile: the disk is waited for once.

        Each write in it still happens whole or not at all; they are durable when this ends, not before.
        """
        with self._write() as connection:
            self._together.connection = connection
            try:
                yield
            finally:
                self._together.connection = None
                self._together.forget()

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that reads: it sees one moment of the database; within `together` what was written there."""
        shared = self._together.connection
        return self._engine.connect() if shared is None else nullcontext(shared)

    # -- what the campaign is ------------------------------------------------------------------------------------------

    def config(self) -> CampaignConfig:
        """The campaign's configuration."""
        with self._engine.connect() as connection:
            return self.config_in(connection)

    def config_in(self, connection: sa.Connection) -> CampaignConfig:
        """The campaign's configuration, read once: it never changes."""
        if self._config is None:
            self._config = from_json(connection.execute(sa.select(campaign.c.config)).scalar_one())
        return self._config

    def pool(self) -> dict[str, object]:
        """Where the pool was, and the fingerprint of its content."""
        with self._engine.connect() as connection:
            return json.loads(connection.execute(sa.select(campaign.c.pool)).scalar_one())

    def point_to(self, pool: Mapping[str, object]) -> None:
        """Note where the pool is now."""
        with self._write() as connection:
            connection.execute(campaign.update().values(pool=json.dumps(dict(pool))))

    def project(self) -> Project | None:
        """The settings of the campaign's human side, or None where there is none."""
        with self._engine.connect() as connection:
            return read_project(connection)

    def set_project(self, settings: Project) -> None:
        """Keep the settings of the campaign's human side."""
        with self._write() as connection:
            write_project(connection, settings)

    def add_items(self, given: Iterable[Item]) -> None:
        """Keep what people see of the items, all or none."""
        with self._write() as connection:
            add_items(connection, given)

    def item(self, id_: ItemId) -> Item | None:
        """What people see of an item, or None when it is not there."""
        return self.items([id_]).get(id_)

    def items(self, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
        """What people see of these items, in their order; ids that are not there are left out."""
        with self.reading() as connection:
            return find_items(connection, ids)

    # -- rounds --------------------------------------------------------------------------------------------------------

    def rounds(self) -> list[RoundRecord]:
        """All rounds, oldest first."""
        with self.reading() as connection:
            rows = connection.execute(sa.select(rounds).order_by(rounds.c.round)).mappings().all()
        names = [field_.name for field_ in fields(RoundRecord)]
        return [RoundRecord(**{name: _parsed(name, row[name]) for name in names}) for row in rows]

    def open_round(
        self, record: RoundRecord, ranking: Sequence[tuple[ItemId, float]], drawn: Collection[ItemId] = ()
    ) -> None:
        """Start a round with its ranking and who in it was drawn at random: one transaction, all of it or nothing."""
        values = {field_.name: getattr(record, field_.name) for field_ in fields(record)}
        values |= {"metrics": json.dumps(dict(record.metrics)), "opened_at": time.time()}
        values |= {"costs": None if record.costs is None else json.dumps(asdict(record.costs))}
        with self._write() as connection:
            connection.execute(rounds.insert().values(**values))
            self._add_candidates(connection, record.round, 0, ranking, drawn)

    def extend_ranking(self, round_: int, ranking: Sequence[tuple[ItemId, float]], snapshot: str | None) -> None:
        """Replace a round's ranking by a longer one that begins with it."""
        with self._write() as connection:
            n_old = connection.execute(
                sa.select(sa.func.count()).select_from(candidates).where(candidates.c.round == round_)
            ).scalar_one()
            self._add_candidates(connection, round_, n_old, ranking[n_old:])
            connection.execute(rounds.update().where(rounds.c.round == round_).values(snapshot=snapshot))

    @staticmethod
    def _add_candidates(
        connection: sa.Connection,
        round_: int,
        start: int,
        ranking: Sequence[tuple[ItemId, float]],
        drawn: Collection[ItemId] = (),
    ) -> None:
        rows = [
            {"round": round_, "position": start + i, "item": item, "score": float(score), "audit": item in drawn}
            for i, (item, score) in enumerate(ranking)
        ]
        if rows:
            connection.execute(candidates.insert(), rows)

    def close_round(self, round_: int, state_after: str | None, metrics: Mapping[str, float]) -> None:
        """Mark a round as over, with what the strategy learned from it; its measurements gain the given ones.

        It stays open if somebody took an answer back while it was learned from: then it is not over.
        """
        with self._write() as connection:
            query = open_query(connection, self.config_in(connection))
            if query is not None and query.items:
                return
            old = connection.execute(sa.select(rounds.c.metrics).where(rounds.c.round == round_)).scalar_one()
            merged = json.dumps({**json.loads(old), **metrics})
            connection.execute(
                rounds.update()
                .where(rounds.c.round == round_)
                .values(closed=True, state_after=state_after, metrics=merged, closed_at=time.time())
            )

    def ranking(self, round_: int) -> list[ItemId]:
        """The ranking of a round, best first: at least the items that were asked."""
        with self._engine.connect() as connection:
            return ranking_of(connection, round_)

    def drawn(self) -> dict[int, list[ItemId]]:
        """The items each round's audit drew, in the order of the ranking; rounds without any are left out."""
        query = sa.select(candidates.c.round, candidates.c.item).where(candidates.c.audit)
        out: dict[int, list[ItemId]] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(query.order_by(candidates.c.round, candidates.c.position)):
                out.setdefault(row.round, []).append(row.item)
        return out

    def scores(self, round_: int) -> dict[ItemId, float]:
        """The ranking's items with their scores, best first."""
        query = sa.select(candidates.c.item, candidates.c.score).where(candidates.c.round == round_)
        with self._engine.connect() as connection:
            return {row.item: row.score for row in connection.execute(query.order_by(candidates.c.position))}

    # -- answers -------------------------------------------------------------------------------------------------------

    def offered(self) -> Query | None:
        """The items that may be answered now, none when the round awaits its closing; None when no round is open."""
        with self._engine.connect() as connection:
            return open_query(connection, self.config_in(connection))

    def record(self, given: Mapping[ItemId, Answer | str], annotator: str = "") -> None:
        """Take answers, all or none: to offered items, or corrections of earlier ones; a repetition changes nothing."""
        with self._write() as connection:
            take(connection, self.config_in(connection), given, annotator)

    def requeue(self, items: Sequence[ItemId]) -> None:
        """Forget that these items were skipped, so that a later round may ask them again; their cost stays spent."""
        with self._write() as connection:
            requeue(connection, items)

    def spent_by_round(self) -> dict[int, float]:
        """What each round has cost so far: its answers as they stand, and its skips that were queued again."""
        with self._engine.connect() as connection:
            return spent_by_round(connection)

    @property
    def spent(self) -> float:
        """What the campaign has cost so far."""
        return math.fsum(self.spent_by_round().values())

    def covers(self, record: RoundRecord) -> float:
        """What the answers of an open round may cost together."""
        with self._engine.connect() as connection:
            config = self.config_in(connection)
            return covers(connection, config, record.round, record.budget, charged(config, record.costs))

    def ledger(self) -> list[LedgerLine]:
        """Every answered item, in the order of purchase: by round, then by place in the ranking."""
        with self._engine.connect() as connection:
            return _ledger(connection)

    def ledger_and_log(self) -> tuple[list[LedgerLine], int]:
        """The ledger, and the number of the log's newest entry at that moment."""
        with self._engine.connect() as connection:
            return _ledger(connection), log_length(connection)

    def ledger_at(self, seen: int) -> list[LedgerLine]:
        """The ledger as it stood when the log's newest entry was number `seen`."""
        with self._engine.connect() as connection:
            return ledger_at(connection, seen)

    def history(self) -> list[tuple[ItemId, str, str | None, float]]:
        """Every answer ever given, corrections included, oldest first: (item, kind, class, cost)."""
        query = sa.select(answer_log).order_by(answer_log.c.seq)
        with self._engine.connect() as connection:
            return [(r.item, r.kind, r.name, r.cost) for r in connection.execute(query)]


def _ledger(connection: sa.Connection) -> list[LedgerLine]:
    query = sa.select(answers).order_by(answers.c.round, answers.c.position)
    return [
        LedgerLine(r.round, r.position, r.item, answer_from(r.kind, r.name), r.cost, r.annotator, r.audit)
        for r in connection.execute(query)
    ]


def _parsed(name: str, value: Any) -> Any:
    return json.loads(value) if name == "metrics" else costs_from(value) if name == "costs" else value


@contextmanager
def _disk_errors(folder: Path | None) -> Generator[None]:
    try:
        yield
    except exc.OperationalError as error:
        if "full" in str(error.orig):
            raise StoreError(
                f"the disk is full: the campaign in '{folder}' was not changed. Free some space and start again."
            ) from error
        raise StoreError(f"the campaign in '{folder}' cannot be written: {error.orig}.") from error
