"""A new project: everything is checked first, built under another name, and appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mqnet.data.pools import verify
from mqnet.data.sources import Source
from mqnet.errors import ConfigError, InputError, PoolError
from mqnet.loop.first import class_arrays
from mqnet.loop.opening import make_model, make_strategy
from mqnet.project.answers import check_names
from mqnet.project.vectors import Vectors, name_vectors
from mqnet.store.blobs import digest_of, disk_error, make_folder, sync_folder
from mqnet.store.campaign import DATABASE, CampaignStore
from mqnet.store.imported import import_answers
from mqnet.store.items import Item
from mqnet.store.lock import LoopLock
from mqnet.store.project import Project
from mqnet.types import OOD, Answer, CampaignConfig, ItemId, Known

VECTORS = "pool.npy"


@dataclass(frozen=True)
class Started:
    """A project that was made."""

    folder: Path
    n_items: int
    kind: str
    n_imported: int
    n_left_out: int
    """Items that could not be read."""

    def json(self) -> str:
        """One JSON object."""
        return json.dumps(
            {
                "folder": str(self.folder),
                "items": self.n_items,
                "kind": self.kind,
                "imported": self.n_imported,
                "left_out": self.n_left_out,
            }
        )


@dataclass(frozen=True)
class People:
    """How people work on a project; see `Project`."""

    name: str = ""
    overlap: int = 1
    lease_seconds: float = 120.0
    early_answers: bool = True


def start(
    source: Source,
    out: Path,
    config: CampaignConfig,
    vectors: Vectors,
    *,
    encoder: str | None = None,
    people: People | None = None,
    labels: Mapping[ItemId, Answer] | None = None,
) -> Started:
    """Make a project in `out` from a source, the campaign's configuration and labels that are there already.

    `vectors` is given the place for the vectors and may find there what an earlier attempt left. Nothing appears under
    `out` before everything is there.
    """
    labels, people = labels or {}, people or People()
    by_names = config.initial == "names"
    if by_names and source.kind != "text":
        raise ConfigError(f"--initial names needs texts; '{source.path}' holds {source.kind}s. Use random or diverse.")
    replace(config, initial="random").check() if by_names else config.check()
    check_names(config.classes)
    make_strategy(config, False)
    make_model(config)
    if len(source) == 0:
        raise PoolError(f"'{source.path}' holds no items: there is nothing to ask.")
    _check_labels(labels, source)
    _check_free(out)
    building = out.with_name(f".{out.name}.new")
    make_folder(building)
    lock = LoopLock(building)
    try:
        for leftover in building.glob(f"{DATABASE}*"):
            leftover.unlink()
        pool = vectors(building / VECTORS)
        verify(pool)
        names = class_arrays(name_vectors(building / VECTORS, config.classes)) if by_names else None
        if names is not None:
            config = replace(config, class_vectors=digest_of(names))
        description = {"fingerprint": pool.fingerprint(), "n_items": len(pool.ids)}
        store = CampaignStore.create(building, config, {**description, "path": str(out.absolute() / VECTORS)})
        try:
            if names is not None:
                store.blobs.put(names)
            there = frozenset(pool.ids) if len(pool.ids) < len(source) else None  # items that cannot be read are not
            store.add_items(_items(source, there))
            labels = {item: answer for item, answer in labels.items() if there is None or item in there}
            root = _root(source, out) if source.kind == "image" else None
            name = people.name or source.path.absolute().stem
            store.set_project(
                Project(
                    name,
                    source.kind,
                    root,
                    encoder,
                    VECTORS,
                    people.overlap,
                    people.lease_seconds,
                    people.early_answers,
                )
            )
            if labels:
                import_answers(store, labels)
        finally:
            store.close()
        _appear(building, out)
    finally:
        lock.release()
    return Started(out, len(pool.ids), source.kind, len(labels), len(source) - len(pool.ids))


def import_summary(labels: Mapping[ItemId, Answer]) -> str:
    """What imported labels hold, in words."""
    n_known = sum(isinstance(answer, Known) for answer in labels.values())
    n_ood = sum(answer is OOD for answer in labels.values())
    return f"{n_known} known, {n_ood} none of these, {len(labels) - n_known - n_ood} skipped"


def _items(source: Source, there: frozenset[ItemId] | None) -> Iterator[Item]:
    pairs = zip(source.ids, source.refs, strict=True)
    return (Item(item, source.kind, ref) for item, ref in pairs if there is None or item in there)


def _check_labels(labels: Mapping[ItemId, Answer], source: Source) -> None:
    try:
        source.ids.find(list(labels))
    except PoolError as error:
        raise InputError(f"a label was given for something else: {error}") from error


def _check_free(out: Path) -> None:
    if (out / DATABASE).exists():
        raise InputError(
            f"'{out}' holds a campaign already. Go on with it (`mqnet status {out}`), or name another --out."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"'{out}' is there already and is not empty. Name another --out.")


def _root(source: Source, out: Path) -> str:
    """Where the images are, seen from the project: relative where both may be moved together, else absolute."""
    place, home = source.path.resolve(), out.absolute().parent.resolve()
    if place.is_relative_to(home):
        return os.path.relpath(place, home / out.name)
    return str(place)


def _appear(building: Path, out: Path) -> None:
    try:
        (building / "loop.lock").unlink(missing_ok=True)
        for parts in building.glob(".*.parts"):  # of attempts with other encoders
            shutil.rmtree(parts)
        building.replace(out)
        sync_folder(out.absolute().parent)
    except OSError as error:
        raise disk_error(out, error) from error
