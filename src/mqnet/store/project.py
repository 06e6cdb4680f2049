"""What a campaign with people is beside its configuration: settings of the folder that may change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

import sqlalchemy as sa

from mqnet.errors import ConfigError
from mqnet.store.tables import project


@dataclass(frozen=True)
class Project:
    """A campaign's human side: what is shown, by what it was made a pool, and how people share the work.

    `root` is the folder of the images (absolute, or relative to the campaign folder), `vectors` the pool's file,
    `overlap` the number of people who answer each item, `lease_seconds` how long an item waits for the person it was
    given to, `early_answers` whether people go on down the ranking while the loop trains.
    """

    name: str
    kind: str
    root: str | None
    encoder: str | None
    vectors: str
    overlap: int = 1
    lease_seconds: float = 120.0
    early_answers: bool = True

    def __post_init__(self) -> None:
        if self.overlap < 1:
            raise ConfigError(f"overlap is {self.overlap}: each item is answered by at least one person.")
        if not 1 <= self.lease_seconds < float("inf"):
            raise ConfigError(f"lease_seconds is {self.lease_seconds}: give at least one second.")


_SETTINGS = sa.select(project.c.settings)


def read_project(connection: sa.Connection) -> Project | None:
    """The settings, or None for a campaign without people."""
    text = connection.execute(_SETTINGS).scalar()
    if text is None:
        return None
    known = {field.name for field in fields(Project)}
    return Project(**{name: value for name, value in json.loads(text).items() if name in known})


def write_project(connection: sa.Connection, settings: Project) -> None:
    """Keep the settings in place of earlier ones."""
    connection.execute(project.delete())
    connection.execute(project.insert().values(id=1, settings=json.dumps(asdict(settings), ensure_ascii=False)))
