"""What a running server holds of one campaign: its store, its writer, its images, who may come in."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import quote

from fastapi import Depends, Request

from mqnet.errors import StoreError
from mqnet.server.images import Images
from mqnet.server.writer import Writer
from mqnet.store.campaign import CampaignStore
from mqnet.store.health import Health
from mqnet.store.inbox import Inbox
from mqnet.store.items import IMAGE, TEXT, VECTOR, Item
from mqnet.store.overview import Overview, Situation
from mqnet.store.people import People
from mqnet.store.project import Project
from mqnet.types import ItemId

T = TypeVar("T")


@dataclass(frozen=True)
class Desk:
    """One campaign, open for labelling."""

    store: CampaignStore
    project: Project
    inbox: Inbox
    overview: Overview
    health: Health
    people: People
    write: Writer[Situation]
    images: Images | None

    @classmethod
    def open(cls, folder: Path) -> Desk:
        """The campaign of a folder; one that was not made for people is refused."""
        store = CampaignStore.open(folder)
        project = store.project()
        if project is None:
            store.close()
            raise StoreError(f"the campaign in '{folder}' has nothing to show: `mqnet init` makes one for people.")
        images = Images(folder / project.root) if project.root is not None else None  # an absolute root stays as it is
        overview = Overview(store)
        return cls(
            store, project, Inbox(store), overview, Health(store), People(store), Writer(store, overview.situation),
            images,
        )  # fmt: skip

    def close(self) -> None:
        """End the writer and give the database back."""
        self.write.close()
        self.store.close()

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers send the cookies of all ports of a machine, campaigns must not share one."""
        made = f"{self.store.pool().get('fingerprint')}{(self.store.folder or Path()).resolve()}"
        return f"mqnet-{hashlib.sha256(made.encode()).hexdigest()[:12]}"

    async def read(self, work: Callable[[], T]) -> T:
        """Do this work, which only reads, beside the others."""
        return await asyncio.to_thread(work)

    def shown(self, ids: list[ItemId]) -> dict[ItemId, dict[str, object]]:
        """The items as the pages show them."""
        found = self.store.items(ids)
        return {id_: _card(found.get(id_, Item(id_, VECTOR))) for id_ in ids}


def _card(item: Item) -> dict[str, object]:
    return {
        "id": item.id,
        "kind": item.kind,
        "text": item.ref if item.kind == TEXT else None,
        "image": f"/api/items/{quote(item.id, safe='')}/image" if item.kind == IMAGE else None,
    }


async def desk_of(request: Request) -> Desk:  # not to be waited for: but a plain function would run in a thread
    """The desk a request is for."""
    desk: Desk = request.app.state.desk
    return desk


AtDesk = Annotated[Desk, Depends(desk_of)]
