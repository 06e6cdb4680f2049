"""One campaign's records: short transactions, each durable when it returns."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from mqnet.errors import AnswerError, StoreError
from mqnet.store import schema
from mqnet.store.blobs import Blobs, FolderBlobs, MemoryBlobs, make_folder, sync_folder
from mqnet.store.codec import costs_from, from_json, to_json
from mqnet.store.ledger import answer_columns, answer_from, charged, offered
from mqnet.store.tables import answer_log, answers, campaign, candidates, rounds
from mqnet.types import Answer, CampaignConfig, Costs, ItemId, LedgerLine, Query, as_answer

DATABASE = "campaign.db"


@dataclass(frozen=True)
class RoundRecord:
    """What is stored of a round: its budget, costs as measured, the digests of its arrays and its measurements."""

    round: int
    budget: float
    costs: Costs | None = None
    closed: bool = False
    state_before: str | None = None
    snapshot: str | None = None
    state_after: str | None = None
    model: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


class CampaignStore:
    """A campaign's database and arrays, in a folder or in memory."""

    def __init__(self, engine: sa.Engine, blobs: Blobs, folder: Path | None) -> None:
        self._engine = engine
        self.blobs = blobs
        self.folder = folder

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
        with _disk_errors(self.folder), self._engine.execution_options(write=True).begin() as connection:
            yield connection

    # -- what the campaign is ------------------------------------------------------------------------------------------

    def config(self) -> CampaignConfig:
        """The campaign's configuration."""
        with self._engine.connect() as connection:
            return from_json(connection.execute(sa.select(campaign.c.config)).scalar_one())

    def pool(self) -> dict[str, object]:
        """Where the pool was, and the fingerprint of its content."""
        with self._engine.connect() as connection:
            return json.loads(connection.execute(sa.select(campaign.c.pool)).scalar_one())

    def point_to(self, pool: Mapping[str, object]) -> None:
        """Note where the pool is now."""
        with self._write() as connection:
            connection.execute(campaign.update().values(pool=json.dumps(dict(pool))))

    # -- rounds --------------------------------------------------------------------------------------------------------

    def rounds(self) -> list[RoundRecord]:
        """All rounds, oldest first."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(rounds).order_by(rounds.c.round)).mappings().all()
        names = [field_.name for field_ in fields(RoundRecord)]
        parsed = [{"metrics": json.loads(row["metrics"]), "costs": costs_from(row["costs"])} for row in rows]
        return [
            RoundRecord(**{name: row[name] for name in names} | read) for row, read in zip(rows, parsed, strict=True)
        ]

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
        """Mark a round as over, with what the strategy learned from it; its measurements gain the given ones."""
        with self._write() as connection:
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
            return _ranking(connection, round_)

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
            return _offered(connection, from_json(connection.execute(sa.select(campaign.c.config)).scalar_one()))

    def record(self, given: Mapping[ItemId, Answer | str], annotator: str = "") -> None:
        """Take answers, all or none: to offered items, or corrections of earlier ones; a repetition changes nothing."""
        with self._write() as connection:
            config = from_json(connection.execute(sa.select(campaign.c.config)).scalar_one())
            query = _offered(connection, config)
            open_items = frozenset(query.items) if query else frozenset[ItemId]()
            old = _answered(connection, list(given))
            places = {item: i for i, item in enumerate(_ranking(connection, query.round))} if query else {}
            drawn = _drawn(connection, query.round) if query else frozenset[ItemId]()
            charges = {
                round_: _charges(connection, config, round_)
                for round_ in {r for r, *_ in old.values()} | ({query.round} if query else set())
            }
            new: list[dict[str, object]] = []
            log: list[dict[str, object]] = []
            for item, value in given.items():
                answer = as_answer(value, config.classes, item)
                kind, name = answer_columns(answer)
                row: dict[str, object] = {"item": item, "kind": kind, "name": name, "annotator": annotator}
                row |= {"answered_at": time.time()}
                if item in old:
                    round_, *answered = old[item]
                    if answered == [kind, name]:
                        continue
                    row |= {"round": round_, "cost": float(charges[round_].of(answer))}
                    connection.execute(answers.update().where(answers.c.item == item).values(**row))
                elif query is not None and item in open_items:
                    row |= {"round": query.round, "cost": float(charges[query.round].of(answer))}
                    new.append({**row, "position": places[item], "audit": item in drawn})
                else:
                    raise AnswerError(_not_asked(item, query))
                log.append(row)
            if new:
                connection.execute(answers.insert(), new)
            if log:
                connection.execute(answer_log.insert(), log)

    def requeue(self, items: Sequence[ItemId]) -> None:
        """Forget that these items were skipped, so that a later round may ask them again."""
        with self._write() as connection:
            for item in items:
                old = connection.execute(sa.select(answers).where(answers.c.item == item)).mappings().first()
                if old is None or old["kind"] != "skip":
                    raise AnswerError(f"item '{item}' was not skipped: only skipped items can be queued again.")
                row = {name: old[name] for name in ("item", "round", "annotator")}
                row |= {"kind": "requeued", "name": None, "cost": 0.0, "answered_at": time.time()}
                connection.execute(answer_log.insert().values(**row))
                connection.execute(answers.delete().where(answers.c.item == item))

    def ledger(self) -> list[LedgerLine]:
        """Every answered item, in the order of purchase: by round, then by place in the ranking."""
        query = sa.select(answers).order_by(answers.c.round, answers.c.position)
        with self._engine.connect() as connection:
            return [
                LedgerLine(r.round, r.position, r.item, answer_from(r.kind, r.name), r.cost, r.annotator, r.audit)
                for r in connection.execute(query)
            ]

    def history(self) -> list[tuple[ItemId, str, str | None, float]]:
        """Every answer ever given, corrections included, oldest first: (item, kind, class, cost)."""
        query = sa.select(answer_log).order_by(answer_log.c.seq)
        with self._engine.connect() as connection:
            return [(r.item, r.kind, r.name, r.cost) for r in connection.execute(query)]


def _ranking(connection: sa.Connection, round_: int) -> list[ItemId]:
    query = sa.select(candidates.c.item).where(candidates.c.round == round_).order_by(candidates.c.position)
    return list(connection.execute(query).scalars())


def _answered(connection: sa.Connection, items: Sequence[ItemId]) -> dict[ItemId, tuple[int, str, str | None]]:
    """The round, kind and class of those items that have an answer, asked for in pieces that every database takes."""
    out: dict[ItemId, tuple[int, str, str | None]] = {}
    for start in range(0, len(items), 500):
        query = sa.select(answers).where(answers.c.item.in_(items[start : start + 500]))
        out |= {r.item: (r.round, r.kind, r.name) for r in connection.execute(query)}
    return out


def _offered(connection: sa.Connection, config: CampaignConfig) -> Query | None:
    row = connection.execute(sa.select(rounds.c.round, rounds.c.budget, rounds.c.costs).where(~rounds.c.closed)).first()
    if row is None:
        return None
    charges = charged(config, costs_from(row.costs))
    query = sa.select(answers.c.item, answers.c.cost).where(answers.c.round == row.round)
    answered = {r.item: r.cost for r in connection.execute(query)}
    return Query(row.round, offered(_ranking(connection, row.round), answered, row.budget, charges))


def _charges(connection: sa.Connection, config: CampaignConfig, round_: int) -> Costs:
    text = connection.execute(sa.select(rounds.c.costs).where(rounds.c.round == round_)).scalar_one()
    return charged(config, costs_from(text))


def _drawn(connection: sa.Connection, round_: int) -> frozenset[ItemId]:
    query = sa.select(candidates.c.item).where(candidates.c.round == round_, candidates.c.audit)
    return frozenset(connection.execute(query).scalars())


def _not_asked(item: ItemId, query: Query | None) -> str:
    if query is None:
        return f"item '{item}' was never asked, and no round is open. ask() starts the next one."
    return f"item '{item}' is not open in round {query.round}; ask() returns the open query."


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
