"""Real campaigns for the browser: handwritten digits as images or as texts, and the processes that serve them."""

from __future__ import annotations

import sqlite3
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image

from mqnet.loop.advance import advance
from mqnet.loop.learner import ActiveLearner
from mqnet.oracles.simulated import SimulatedOracle
from mqnet.store.items import Item
from mqnet.store.project import Project
from people import Given, free_port
from processes import Running, Zygote

PATIENCE = 30.0
Ledger = list[tuple[object, ...]]


def with_images(given: Given, folder: Path) -> None:
    """The campaign with a PNG for each item."""
    images = folder / "images"
    images.mkdir(parents=True)
    pixels = np.load(given.folder / "pool.npy").reshape(-1, 8, 8)
    for item, digit in zip(given.truth.ids, pixels, strict=True):
        Image.fromarray((255 * (1 - digit)).astype(np.uint8)).save(images / f"{item}.png")
    _project(given, folder, [Item(item, "image", f"{item}.png") for item in given.truth.ids], root="images")


def with_texts(given: Given, folder: Path) -> None:
    """The campaign with a text for each item."""
    _project(given, folder, [Item(item, "text", f"This is item {item}.") for item in given.truth.ids], root=None)


def _project(given: Given, folder: Path, items: list[Item], root: str | None) -> None:
    with ActiveLearner(folder=folder, **given.learner) as learner:
        settings = Project(
            name="digits", kind=items[0].kind, root=root, encoder=None, vectors="pool.npy", early_answers=False
        )
        learner.store.set_project(settings)
        learner.store.add_items(items)


def simulated(given: Given, folder: Path) -> Ledger:
    """The ledger of the simulated run."""
    with ActiveLearner(folder=folder, **given.learner) as learner:
        while advance(learner, SimulatedOracle(given.truth)).state != "done":
            pass
    return ledger(folder)


def ledger(folder: Path) -> Ledger:
    """Every answer that was bought."""
    query = "SELECT round, position, item, kind, name, cost FROM answers ORDER BY round, position"
    return rows(folder, query)


def rows(folder: Path, query: str) -> Ledger:
    """What a query finds in a campaign's database."""
    with closing(sqlite3.connect(f"file:{folder / 'campaign.db'}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


class Served:
    """`mqnet label` on a campaign, which can be killed and started again at the same address."""

    def __init__(self, mqnet: Zygote, folder: Path, *, worker: bool = True) -> None:
        self._mqnet, self._folder, self._port = mqnet, folder, free_port()
        self._more = () if worker else ("--no-worker",)
        self.url = f"http://127.0.0.1:{self._port}"
        self._running: Running | None = None

    def __enter__(self) -> Served:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            self.kill()

    def start(self) -> None:
        """Start server and worker; returns when pages are served."""
        self._running = self._mqnet.start(
            "label", self._folder, "--port", self._port, "--no-browser", *self._more, cwd=self._folder.parent
        )
        began = time.monotonic()
        while True:
            try:
                with urllib.request.urlopen(self.url, timeout=5):
                    return
            except urllib.error.URLError:
                assert time.monotonic() - began < PATIENCE, self._running.err.read_text()
                time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to server and worker at once."""
        assert self._running is not None
        self._running.kill()
        self._running.wait()
        self._running = None
