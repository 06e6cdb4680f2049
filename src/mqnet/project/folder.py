"""A project: the folder of a campaign with people. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mqnet.errors import InputError
from mqnet.store.campaign import DATABASE, CampaignStore
from mqnet.store.project import Project

DEFAULT = Path("mqnet-campaign")
"""Where a project is unless another folder is named."""


def is_project(folder: Path) -> bool:
    """Whether this is the folder of a campaign with people."""
    if not (folder / DATABASE).is_file():
        return False
    store = CampaignStore.open(folder)
    try:
        return store.project() is not None
    finally:
        store.close()


@contextmanager
def opened(folder: Path) -> Generator[tuple[CampaignStore, Project]]:
    """The store and the settings of a project; any other folder is an error that says how to make one."""
    if not (folder / DATABASE).is_file():
        raise InputError(f"'{folder}' holds no campaign. `mqnet init SOURCE --classes ... --out {folder}` makes one.")
    store = CampaignStore.open(folder)
    try:
        settings = store.project()
        if settings is None:
            raise InputError(f"'{folder}' holds a campaign without people, not one made by `mqnet init`.")
        yield store, settings
    finally:
        store.close()


def root_of(folder: Path, settings: Project) -> Path | None:
    """The folder of a project's images, or None where it has none."""
    return None if settings.root is None else folder / settings.root
