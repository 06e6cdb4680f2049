"""What `mqnet embed` asks of an encoder, and which one it takes when none is named."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias

from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.registry import ENCODER, Entry
from mqnet.rng import Key
from mqnet.types import Arrays

Batch: TypeAlias = "Tensor | Sequence[str]"
"""Images uint8 [n, 3, S, S], or n texts."""
Batches = Callable[[Sequence[int]], Iterator[Batch]]
"""The items at these places of the pool, batch by batch."""


class Encoder(Protocol):
    """Turns items into vectors. Its options are set when it is made; nothing is loaded before the first batch."""

    takes: ClassVar[str]
    """'image' or 'text'."""
    requires: ClassVar[tuple[str, ...]]
    """The packages it needs beyond mqnet's own."""
    install: ClassVar[str]
    """How to get them, as arguments of pip."""

    @property
    def size(self) -> int:
        """The side of the square images it wants; 0 for texts."""
        ...

    @property
    def batch(self) -> int:
        """How many items it wants at once."""
        ...

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """What it has to learn from the pool before it can encode; nothing for a frozen one."""
        ...

    def restore(self, state: Arrays) -> None:
        """Take up what was learned; called before the first batch, also on another machine for new items."""
        ...

    def encode(self, batch: Batch) -> Tensor:
        """The vectors float32 [n, D] of a batch, a row's value independent of the other rows."""
        ...


DEFAULTS: Mapping[str, tuple[str, ...]] = {"image": ("efficientnet-lite0", "pixels"), "text": ("minilm", "ngrams")}
"""For each kind of item, the best first; the last needs nothing."""


def default_encoder(kind: str) -> tuple[str, str]:
    """The best encoder that is installed for a kind of item, and a sentence on a better one ('' if there is none)."""
    choices = DEFAULTS.get(kind)
    if choices is None:
        raise ConfigError(f"items of kind '{kind}' are vectors already: there is nothing to embed.")
    best = choices[0]
    chosen = next(name for name in choices if not missing(ENCODER.get(name)))
    if chosen == best:
        return chosen, ""
    install = ENCODER.get(best).target.install  # pyright: ignore[reportFunctionMemberAccess]
    return chosen, f"'{chosen}' needs nothing but is rough; `pip install {install}` gets '{best}', which is far better."


def make_encoder(name: str, options: Mapping[str, object] | None = None) -> Encoder:
    """The encoder of a name. 'torchvision:resnet50' stands for the encoder 'torchvision' with that model."""
    name, _, model = name.partition(":")
    entry = ENCODER.get(name)
    options = dict(options or {})
    if model:
        options["model"] = model
    absent = missing(entry)
    if absent:
        install = entry.target.install  # pyright: ignore[reportFunctionMemberAccess]
        raise ConfigError(f"the encoder '{name}' needs {', '.join(absent)}: `pip install {install}`.")
    return ENCODER.make(name, options)


def missing(entry: Entry) -> list[str]:
    """The packages an encoder needs that are not installed."""
    requires: tuple[str, ...] = getattr(entry.target, "requires", ())
    return [package for package in requires if importlib.util.find_spec(package) is None]
