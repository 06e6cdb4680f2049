"""Opening a campaign database: connection settings, creation and migration."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import StaticPool

from mqnet.errors import StoreError
from mqnet.store.tables import metadata

MIGRATIONS = Path(__file__).parent / "migrations"
LATEST = "0004"
"""The newest revision in `migrations/versions`; a test holds it to that."""


def connect(path: Path | None) -> sa.Engine:
    """An engine on a SQLite file, or on memory for None: WAL, foreign keys, durable on commit, one writer at a time."""
    if path is None:
        engine = sa.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    else:
        engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})

    def configure(connection: object, _record: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined]  # pyright: ignore  # we say BEGIN ourselves
        cursor = connection.cursor()  # type: ignore[attr-defined]  # pyright: ignore
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def begin(connection: sa.Connection) -> None:
        # a transaction that may write takes the lock at once: it can wait for it, but never fail half-way
        connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("write") else "BEGIN")

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", begin)
    return engine


def create(engine: sa.Engine) -> None:
    """Make all tables and note the schema's revision."""
    with engine.execution_options(write=True).begin() as connection:
        metadata.create_all(connection)
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES (:v)"), {"v": LATEST})


def migrate(engine: sa.Engine, place: str) -> None:
    """Bring an existing database to the latest revision; one from a newer version of mqnet is refused untouched."""
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            raise StoreError(f"'{place}' is not a campaign: its database has no schema version.")
        revision = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()
    if revision == LATEST:
        return
    if revision not in revisions():
        raise StoreError(
            f"'{place}' was written by a newer mqnet (schema '{revision}'; this one knows up to '{LATEST}'). "
            "Upgrade mqnet to open it. Nothing was changed."
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.execution_options(write=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@cache
def revisions() -> frozenset[str]:
    """Every revision this version can migrate from."""
    return frozenset(path.name.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))
