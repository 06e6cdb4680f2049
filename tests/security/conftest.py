"""A campaign on images behind its app, in this process, and what must not change in it or leak out of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from PIL import Image
from starlette.testclient import TestClient

from mqnet.server.app import create_app
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.items import Item
from mqnet.store.people import OWNER, People
from mqnet.store.project import Project
from mqnet.types import Budget, CampaignConfig

SECRET = b"nobody may read this"
ITEMS = [f"i{n}.png" for n in range(6)]
NAMED_LIKE_PATHS = ["../secret.txt", "/etc/passwd", "out/secret.png", "a?b#c é.png"]
"""Items may be called anything: the first three lead out of the folder of images, the last is a file in it."""


@dataclass(frozen=True)
class Guarded:
    """A campaign with a round of three items open, its app, and the tokens of its people."""

    folder: Path
    app: FastAPI
    client: TestClient
    tokens: dict[str, str]

    def headers(self, who: str, **more: str) -> dict[str, str]:
        """What the pages send for somebody."""
        return {"Authorization": f"Bearer {self.tokens[who]}", "X-Mqnet": "1", **more}

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Everything in the database but who has what on loan for the moment."""
        with closing(sqlite3.connect(self.folder / "campaign.db")) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: list(database.execute(f'SELECT * FROM "{name}"')) for name in names if name != "leases"}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    images, folder = tmp_path / "images", tmp_path / "campaign"
    images.mkdir()
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (images / "notes.txt").write_bytes(SECRET)
    (images / "out").symlink_to(tmp_path)
    Image.new("RGB", (8, 8)).save(tmp_path / "secret.png")
    for name in (*ITEMS, NAMED_LIKE_PATHS[-1]):
        Image.new("RGB", (8, 8), (9, 9, 9)).save(images / name)
    config = CampaignConfig(("cat", "dog"), Budget(3.0, unit="minutes"))
    store = CampaignStore.create(folder, config, {"n_items": len(ITEMS)})
    store.set_project(Project("pets", "image", str(images), None, "pool.npy"))
    store.add_items(Item(item, "image", item) for item in (*ITEMS, *NAMED_LIKE_PATHS))
    store.open_round(RoundRecord(0, 3.0), [(item, 0.0) for item in ITEMS])
    people = People(store)
    tokens = {"ann": people.add("ann"), "bob": people.add("bob"), "olga": people.add("olga", OWNER)}
    store.close()
    app = create_app(folder)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Guarded(folder, app, client, tokens)
