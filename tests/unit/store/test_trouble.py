"""A full disk, a damaged or a newer campaign, two processes: an error that says so, and nothing half-written."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event

from mqnet.errors import BusyError, StoreError
from mqnet.loop.learner import ActiveLearner
from mqnet.store import schema
from mqnet.store.blobs import FolderBlobs, MemoryBlobs, write_durably
from mqnet.store.campaign import DATABASE, CampaignStore
from mqnet.store.lock import LoopLock
from mqnet.store.tables import metadata
from mqnet.types import OOD, Budget, CampaignConfig, Known

CONFIG = CampaignConfig(("cat", "dog"), Budget(10.0))
VECTORS = np.random.Generator(np.random.PCG64(0)).normal(size=(3000, 3)).astype(np.float32)


def start(folder: Path, **changes) -> ActiveLearner:
    options = {"budget": 400.0, "strategy": "random", **changes}
    return ActiveLearner(
        VECTORS, ("cat", "dog"), model={"name": "head", "hidden": 4, "n_steps": 2}, folder=folder, **options
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# -- a full disk


def test_no_room_for_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(tmp_path) as learner:
        learner.tell(dict.fromkeys(learner.ask().items, "cat"))
        before = learner.store.history(), len(learner.store.rounds())

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr("mqnet.store.blobs.os.fsync", full)
            with pytest.raises(StoreError, match="the disk is full"):
                learner.ask()
        assert not [p for p in tmp_path.rglob("*") if "safetensors" in p.name]
        assert (learner.store.history(), len(learner.store.rounds())) == before
        query = learner.ask()
    with start(tmp_path / "undisturbed") as learner:
        learner.tell(dict.fromkeys(learner.ask().items, "cat"))
        assert learner.ask() == query


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES])
def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", fail)
    words = "could not be written: Permission denied" if number == errno.EACCES else "the disk is full"
    with pytest.raises(StoreError, match=words):
        write_durably(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def hold_to(store: CampaignStore, n_pages: int | None) -> None:
    """Let the database grow to so many pages and no further."""
    store._engine.dispose()

    def limit(connection, _record) -> None:
        connection.execute(f"PRAGMA max_page_count = {n_pages or 2**30}")

    event.listen(store._engine, "connect", limit)


def n_pages(store: CampaignStore) -> int:
    with store._engine.connect() as connection:
        return connection.exec_driver_sql("PRAGMA page_count").scalar_one()


def test_no_room_in_the_database(tmp_path: Path) -> None:
    with start(tmp_path) as learner:
        hold_to(learner.store, n_pages(learner.store))
        with pytest.raises(StoreError, match="the disk is full"):
            learner.ask()
        assert learner.store.rounds() == []
        hold_to(learner.store, None)
        query = learner.ask()
        hold_to(learner.store, n_pages(learner.store) + 2)
        with pytest.raises(StoreError, match="the disk is full"):
            learner.tell(dict.fromkeys(query.items, OOD))
        assert learner.ledger == []
        assert learner.store.history() == []
        hold_to(learner.store, None)
        assert learner.ask() == query
        learner.tell(dict.fromkeys(query.items, OOD))
        assert len(learner.ledger) == 400


def test_no_room_for_a_new_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = schema.connect

    def small(path: Path | None) -> sa.Engine:
        engine = connect(path)
        event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA max_page_count = 4"))
        return engine

    with monkeypatch.context() as patch:
        patch.setattr(schema, "connect", small)
        with pytest.raises(StoreError, match="the disk is full"):
            start(tmp_path)
    assert not (tmp_path / DATABASE).exists()
    with start(tmp_path) as learner:
        assert learner.ask() is not None


# -- arrays


@pytest.mark.parametrize(
    "make", [lambda folder: FolderBlobs(folder), lambda _: MemoryBlobs()], ids=["folder", "memory"]
)
def test_arrays_come_back_as_they_went(tmp_path: Path, make) -> None:
    blobs = make(tmp_path)
    square = np.arange(12, dtype=np.float32).reshape(3, 4)
    arrays = {
        "f16": square.astype(np.float16),
        "i64": square.astype(np.int64),
        "flag": square > 3,
        "one": square[0, 0:1],
    }
    arrays |= {
        "transposed": square.T,
        "strided": square[::2, ::2],
        "nothing": square[:0],
        "scalar": np.asarray(np.float32(3.5)),
    }
    digest = blobs.put(arrays)
    assert digest == blobs.put(dict(reversed(arrays.items())))
    back = blobs.get(digest)
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array, strict=True)
    assert digest != blobs.put({**arrays, "scalar": np.asarray(np.float32(3.6))})


def test_a_damaged_or_missing_array_is_named(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    digest = blobs.put({"a": np.arange(5)})
    path = next(tmp_path.rglob("*.safetensors"))
    whole = path.read_bytes()
    for broken in (whole[:-1], whole[:-1] + b"\xff", b""):
        path.write_bytes(broken)
        with pytest.raises(StoreError, match=f"{digest}.*is damaged"):
            blobs.get(digest)
    path.unlink()
    with pytest.raises(StoreError, match=f"{digest}.*is missing"):
        blobs.get(digest)


# -- the database


def test_a_newer_schema_is_refused_untouched(tmp_path: Path) -> None:
    with start(tmp_path) as learner:
        learner.ask()
        with learner.store._engine.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=r"newer mqnet \(schema '9999'"):
        ActiveLearner.open(tmp_path, VECTORS)
    with pytest.raises(StoreError, match="Upgrade mqnet"):
        start(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00" + b"\x01" * 2000])
def test_something_else_is_no_campaign(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DATABASE).write_bytes(content)
    with pytest.raises(StoreError, match=r"not a readable database|not a campaign"):
        CampaignStore.open(tmp_path)
    with pytest.raises(StoreError, match="holds a campaign already"):
        CampaignStore.create(tmp_path, CONFIG, {})


def test_an_empty_folder_is_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no campaign"):
        CampaignStore.open(tmp_path / "nowhere")


def test_a_half_built_campaign_is_built_again(tmp_path: Path) -> None:
    for name in (f".{DATABASE}.new", f".{DATABASE}.new-wal"):
        (tmp_path / name).write_bytes(b"half")
    with start(tmp_path) as learner:
        assert learner.ask() is not None
    assert not [p for p in tmp_path.iterdir() if ".new" in p.name]


def scripts(folder: Path = schema.MIGRATIONS) -> ScriptDirectory:
    return ScriptDirectory(str(folder))


def test_the_migrations_end_at_the_schema_as_it_is_said() -> None:
    assert scripts().get_heads() == [schema.LATEST]
    assert {revision.revision for revision in scripts().walk_revisions()} == schema.revisions()

    def shape(engine: sa.Engine) -> dict[str, object]:
        look = sa.inspect(engine)
        tables = sorted(set(look.get_table_names()) - {"alembic_version"})
        plain = [[{**column, "type": str(column["type"])} for column in look.get_columns(table)] for table in tables]
        keys = [
            (look.get_pk_constraint(t), look.get_unique_constraints(t), look.get_foreign_keys(t), look.get_indexes(t))
            for t in tables
        ]
        return {"tables": tables, "columns": plain, "keys": keys}

    created, migrated = schema.connect(None), schema.connect(None)
    schema.create(created)
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS))
    with migrated.execution_options(write=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    for engine in (created, migrated):
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, metadata) == []
            assert context.get_current_revision() == schema.LATEST
    assert shape(created) == shape(migrated)
    for engine in (created, migrated):
        engine.dispose()


def test_an_older_campaign_is_migrated_with_all_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(tmp_path / "campaign") as learner:
        learner.tell(dict.fromkeys(learner.ask().items[:3], "cat"))
        ledger = learner.ledger
    later = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, later)
    (later / "versions" / "9998_later.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision, branch_labels, depends_on = '9998', '{schema.LATEST}', None, None\n"
        "def upgrade():\n    op.add_column('answers', sa.Column('note', sa.Text))\n"
    )
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    monkeypatch.setattr(schema, "LATEST", "9998")
    schema.revisions.cache_clear()
    with ActiveLearner.open(tmp_path / "campaign", VECTORS) as learner:
        assert learner.ledger == ledger
        assert "note" in {c["name"] for c in sa.inspect(learner.store._engine).get_columns("answers")}
    ActiveLearner.open(tmp_path / "campaign", VECTORS).close()
    schema.revisions.cache_clear()


# -- two processes

CHILD = """
import sys
from pathlib import Path
from mqnet.errors import BusyError
from mqnet.store.lock import LoopLock
try:
    lock = LoopLock(Path(sys.argv[1]))
except BusyError as error:
    print(f"busy: {error}")
else:
    print("held", flush=True)
    sys.stdin.read()
"""


def child(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    with start(tmp_path):
        other = child(tmp_path)
        assert f"worked on by process {os.getpid()} on " in other.communicate()[0]


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    tmp_path.joinpath("loop.lock").write_text("process 1 on a machine that died long ago, with a long name")
    with child(tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=f"process {other.pid} on "):
            start(tmp_path)
        other.kill()
        other.wait()
        start(tmp_path).close()


def test_answers_are_durable_and_seen_by_others_at_once(tmp_path: Path) -> None:
    with start(tmp_path) as learner:
        item = learner.ask().items[0]
        beside = CampaignStore.open(tmp_path)
        beside.record({item: Known("cat")}, "ann")
        assert [(line.item, line.annotator) for line in learner.ledger] == [(item, "ann")]
        beside.close()


def test_the_database_is_safe_against_power_loss(tmp_path: Path) -> None:
    with start(tmp_path) as learner, learner.store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1


def test_a_lock_that_cannot_be_written_is_a_store_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("mqnet.store.lock.os.write", full)
        with pytest.raises(StoreError, match="the disk is full"):
            LoopLock(tmp_path)
    LoopLock(tmp_path).release()
