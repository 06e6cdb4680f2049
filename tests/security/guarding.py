"""A campaign on images behind its app, in this process, and what must not change in it or leak out of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

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
