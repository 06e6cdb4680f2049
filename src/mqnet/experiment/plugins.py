"""Which plug-ins a cell is made of: their source is part of what defines it, that of others is not."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path

from mqnet.experiment.config import ExperimentConfig
from mqnet.registry import DATASET, INFORMATIVENESS, MODEL, PURITY, STRATEGY, Entry, Registry, registered_by
from mqnet.types import Plugin

SCORES = (PURITY, INFORMATIVENESS)


def used_plugins(config: ExperimentConfig, strategy: Plugin) -> list[Entry]:
    """The strategy, the model and the data set of a cell, and every score that an option of theirs names."""
    chosen = ((STRATEGY, strategy), (MODEL, config.model.plugin()), (DATASET, Plugin(config.scenario.dataset)))
    found = [registry.get(plugin.name) for registry, plugin in chosen]
    options = [value for entry, (_, plugin) in zip(found, chosen, strict=True)
               for value in {**entry.options, **plugin.options}.values()]  # fmt: skip
    names = set(_texts(options))
    return [*found, *(entry for registry in SCORES for entry in _named(registry, names))]


def sources_of(used: Sequence[Entry], files: Sequence[Path]) -> list[str]:
    """A hash of every source a cell is made of beyond this package: plug-in files, modules of other packages.

    A file belongs to a cell that uses what it registers, or that is made of a file that names what it registers. One
    that registers nothing may do anything: it belongs to all.
    """
    registers = {path: registered_by(path) for path in files}
    wanted = {(entry.kind, entry.name) for entry in used}
    taken = [path for path in files if not registers[path] or registers[path] & wanted]
    for path in taken:  # grows on the way
        text = path.read_text(encoding="utf-8")
        for other in files:
            named = any(f'"{name}"' in text or f"'{name}'" in text for _, name in registers[other])
            if other not in taken and named:
                taken.append(other)
    contents = [path.read_bytes() for path in files if path in taken]
    contents += [_source(entry) for entry in used if _is_foreign(entry)]
    return [hashlib.blake2b(content).hexdigest() for content in contents]


def _is_foreign(entry: Entry) -> bool:
    module = entry.target.__module__
    return not module.startswith(("mqnet.", "mqnet_plugin_"))


def _source(entry: Entry) -> bytes:
    try:
        path = inspect.getsourcefile(entry.target)
    except TypeError:
        path = None
    if path is None or not Path(path).is_file():
        return f"{entry.target.__module__}.{entry.target.__qualname__}".encode()
    return Path(path).read_bytes()


def _named(registry: Registry, names: set[str]) -> Iterator[Entry]:
    registry.names()  # walks the room
    return (entry for entry in registry.entries() if entry.name in names)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _texts(one)
