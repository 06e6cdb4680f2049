"""Plug-ins by name: scores, strategies, models, data sets and encoders.

A plug-in is one file in its room, or an entry point of another package (groups `mqnet.purity`,
`mqnet.informativeness`, `mqnet.strategy`, `mqnet.model`, `mqnet.dataset`, `mqnet.encoder`), or a file named with
`--plugin`. Rooms are walked when a name is first looked up, so importing `mqnet` loads none of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from torch import Tensor

from mqnet.errors import PluginError, nearest_name
from mqnet.view import RoundView

F = TypeVar("F", bound=Callable[..., Any])
Needs = frozenset[str]


@dataclass(frozen=True)
class Entry:
    """A registered plug-in: its name, what builds it, the columns it needs and where it comes from."""

    kind: str
    name: str
    target: Callable[..., Any]
    needs: Needs = frozenset()
    reference: bool = False
    log_odds: bool = False
    """Of a purity score: it is the log-odds of being known, not just an order."""

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return (inspect.getdoc(self.target) or "").split("\n\n")[0].replace("\n", " ").strip()

    @property
    def options(self) -> Mapping[str, object]:
        """Its options and their defaults."""
        if dataclasses.is_dataclass(self.target):
            return {f.name: _default(f) for f in dataclasses.fields(self.target) if f.init}
        parameters = inspect.signature(self.target).parameters
        return {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}

    def check_options(self, options: Mapping[str, object]) -> dict[str, object]:
        """The options as the plug-in's annotations want them; an unknown one or a wrong type is refused by name."""
        hints = get_type_hints(self.target)
        out: dict[str, object] = {}
        for name, value in options.items():
            if name not in self.options:
                raise PluginError(
                    f"{self.kind} '{self.name}' has no option '{name}'.{nearest_name(name, self.options)}"
                )
            try:
                out[name] = TypeAdapter(hints[name]).validate_python(value) if name in hints else value
            except ValidationError as error:
                problem = error.errors()[0]["msg"].lower()
                raise PluginError(f"{self.kind} '{self.name}': {name} is {value!r}: {problem}.") from error
            except PydanticSchemaGenerationError:  # an annotation only the plug-in itself understands
                out[name] = value
        return out


def _default(option: dataclasses.Field[Any]) -> object:
    # a field with a factory shows users what it makes, not a marker
    return option.default if option.default_factory is dataclasses.MISSING else option.default_factory()


class Score(Protocol):
    """A score with its options bound: RoundView -> Tensor [N], finite, HIGHER = ask first."""

    @property
    def name(self) -> str:
        """The registered name."""
        ...

    @property
    def needs(self) -> Needs:
        """The columns the score reads."""
        ...

    def __call__(self, view: RoundView) -> Tensor:
        """The score of every row of the view [N]."""
        ...


@dataclass(frozen=True)
class BoundScore:
    """A registered score function together with the options chosen for it."""

    entry: Entry
    options: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def name(self) -> str:
        """The registered name."""
        return self.entry.name

    @property
    def needs(self) -> Needs:
        """The columns the score reads."""
        return self.entry.needs

    def __call__(self, view: RoundView) -> Tensor:
        """The score of every row of the view [N]; a wrong shape or a value that is not finite names score and item."""
        scores = self.entry.target(view, **self.options)
        if not isinstance(scores, Tensor) or scores.shape != (len(view),):
            shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise PluginError(
                f"{self.entry.kind} '{self.name}' returned {shape}; expected one number per item ({len(view)},)."
            )
        finite = scores.isfinite()
        if not bool(finite.all()):
            row = int((~finite).nonzero()[0])
            raise PluginError(f"{self.entry.kind} '{self.name}' is {scores[row].item()} for item '{view.ids[row]}'.")
        return scores


_REGISTRIES: list[Registry] = []


class Registry:
    """The plug-ins of one kind."""

    def __init__(self, kind: str, room: str) -> None:
        self.kind = kind
        self._room = room
        self._entries: dict[str, Entry] = {}
        self._walked = False
        _REGISTRIES.append(self)

    def register(
        self, name: str, *, needs: Iterable[str] = (), reference: bool = False, log_odds: bool = False
    ) -> Callable[[F], F]:
        """A decorator that files a plug-in under `name`; the same name twice is an error that names both places."""

        def file(target: F) -> F:
            entry = Entry(self.kind, name, target, frozenset(needs), reference, log_odds)
            old = self._entries.get(name)
            if old is not None and _place(old.target) != _place(target):
                raise PluginError(
                    f"{self.kind} '{name}' is registered twice: {_place(old.target)} and {_place(target)}."
                )
            self._entries[name] = entry
            return target

        return file

    def get(self, name: str) -> Entry:
        """The plug-in of this name; an unknown one is an error that lists the choices."""
        self._walk()
        if name not in self._entries:
            raise PluginError(f"no {self.kind} is called '{name}'.{nearest_name(name, self._entries)}")
        return self._entries[name]

    def names(self) -> tuple[str, ...]:
        """All registered names, sorted."""
        self._walk()
        return tuple(sorted(self._entries))

    def entries(self) -> tuple[Entry, ...]:
        """What has been registered so far; nothing is imported for it."""
        return tuple(self._entries.values())

    def make(self, name: str, options: Mapping[str, object] | None = None) -> Any:
        """The plug-in built with these options."""
        entry = self.get(name)
        return entry.target(**entry.check_options(options or {}))

    def score(self, name: str, options: Mapping[str, object] | None = None) -> BoundScore:
        """The score of this name with its options bound."""
        entry = self.get(name)
        return BoundScore(entry, entry.check_options(options or {}))

    def _walk(self) -> None:
        if self._walked:
            return
        self._walked = True  # before the walk: a plug-in may look up others while it is imported
        try:
            self._import_all()
        except BaseException:
            self._walked = False  # the next look-up meets the same error, not a registry with a hole
            raise

    def _import_all(self) -> None:
        package = importlib.import_module(self._room)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{self._room}.{module.name}")
        for point in entry_points(group=f"mqnet.{self.kind}"):
            try:
                point.load()
            except PluginError:
                raise
            except Exception as error:
                raise PluginError(
                    f"the {self.kind} plug-in '{point.name}' ({point.value}) does not load: {error}"
                ) from error


def _place(target: Callable[..., Any]) -> str:
    return f"{target.__module__}.{target.__qualname__}"


PURITY = Registry("purity", "mqnet.purity")
INFORMATIVENESS = Registry("informativeness", "mqnet.informativeness")
STRATEGY = Registry("strategy", "mqnet.strategies")
MODEL = Registry("model", "mqnet.models")
DATASET = Registry("dataset", "mqnet.data")
ENCODER = Registry("encoder", "mqnet.encoders")

purity, informativeness, strategy = PURITY.register, INFORMATIVENESS.register, STRATEGY.register
model, dataset, encoder = MODEL.register, DATASET.register, ENCODER.register


def registered_by(path: Path) -> frozenset[tuple[str, str]]:
    """What a loaded plug-in file has registered: (kind, name) each."""
    module = _module_of(path)
    return frozenset(
        (registry.kind, entry.name)
        for registry in _REGISTRIES
        for entry in registry.entries()
        if entry.target.__module__ == module
    )


def _module_of(path: Path) -> str:
    # the folder is part of the name: two files called alike are two plug-ins, and the same name in both is an error
    return f"mqnet_plugin_{path.stem}_{hashlib.blake2b(str(path.resolve()).encode(), digest_size=4).hexdigest()}"


def load_plugin(path: Path) -> None:
    """Import a Python file so that what it registers can be used by name."""
    if not path.is_file():
        raise PluginError(f"plug-in file '{path}' does not exist.")
    name = _module_of(path)
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise PluginError(f"plug-in file '{path}' is not Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except PluginError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise PluginError(f"plug-in file '{path}' does not load: {type(error).__name__}: {error}") from error
