"""Tests here attack the app of a small campaign, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from guarding import ITEMS, NAMED_LIKE_PATHS, SECRET, Guarded
from PIL import Image
from starlette.testclient import TestClient

from mqnet.server.app import create_app
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.items import Item
from mqnet.store.people import OWNER, People
from mqnet.store.project import Project
from mqnet.types import Budget, CampaignConfig


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
