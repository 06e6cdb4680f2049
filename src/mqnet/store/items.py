"""What an item looks like to a person: an image file, a text, or nothing but a vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import sqlalchemy as sa
from sqlalchemy import exc

from mqnet.errors import PoolError
from mqnet.store.tables import items
from mqnet.types import ItemId

IMAGE, TEXT, VECTOR = "image", "text", "vector"
KINDS = (IMAGE, TEXT, VECTOR)
CHUNK = 5_000


@dataclass(frozen=True)
class Item:
    """An item of the pool: `ref` is a path relative to the project's root, the text itself, or empty for a vector."""

    id: ItemId
    kind: str
    ref: str = ""


def add_items(connection: sa.Connection, given: Iterable[Item]) -> None:
    """Add items behind those that are there, in pieces: a million of them never lie in memory at once."""
    start = connection.execute(sa.select(sa.func.coalesce(sa.func.max(items.c.position) + 1, 0))).scalar_one()
    source = iter(given)
    while chunk := list(islice(source, CHUNK)):
        for item in chunk:
            if item.kind not in KINDS:
                raise PoolError(f"item '{item.id}': '{item.kind}' is no kind of item. Kinds: {', '.join(KINDS)}.")
        rows = [
            {"item": item.id, "position": start + i, "kind": item.kind, "ref": item.ref} for i, item in enumerate(chunk)
        ]
        try:
            connection.execute(items.insert(), rows)
        except exc.IntegrityError as error:
            raise PoolError("an item id was given twice, or is there already. Ids must be unique.") from error
        start += len(chunk)


def find_items(connection: sa.Connection, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
    """Those of the ids that are there, in the order given."""
    found: dict[ItemId, Item] = {}
    for start in range(0, len(ids), 500):
        query = sa.select(items.c.item, items.c.kind, items.c.ref).where(items.c.item.in_(ids[start : start + 500]))
        found |= {row.item: Item(row.item, row.kind, row.ref) for row in connection.execute(query)}
    return {id_: found[id_] for id_ in ids if id_ in found}
