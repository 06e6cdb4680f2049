"""Every error a user can meet, under one root.

MqnetError
├── InputError            something the user gave is wrong: a file, a value, an option, a name
│   ├── ConfigError       a configuration file or option
│   ├── PoolError         a pool: shape, type, values, ids
│   │   └── ImageError    an image file: empty, truncated, not an image, too large, unreadable
│   └── AnswerError       an answer that cannot be taken: unknown class, item never asked
├── StoreError            the campaign folder: newer schema, damaged or missing array, disk full
├── BusyError             another loop works on this campaign
└── PluginError           a score, strategy or model that breaks its contract, or a name nobody registered
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MqnetError(Exception):
    """The root: catch this to catch everything mqnet raises on purpose."""


class InputError(MqnetError, ValueError):
    """Something the user gave is wrong; the message names it and says what to do."""


class ConfigError(InputError):
    """A configuration file or an option is wrong."""


class PoolError(InputError):
    """A pool cannot be used: its shape, type, values or ids are wrong."""


class ImageError(PoolError):
    """An image file that cannot be used; `fault` says why in a word or two, for counting."""

    def __init__(self, message: str, fault: str) -> None:
        super().__init__(message)
        self.fault = fault

    def __reduce__(self) -> tuple[type[ImageError], tuple[str, str]]:
        return ImageError, (str(self), self.fault)  # it crosses processes


class AnswerError(InputError):
    """An answer cannot be taken: the class is unknown or the item was never asked."""


class StoreError(MqnetError):
    """The campaign's folder cannot be read or written."""


class BusyError(MqnetError):
    """Another loop works on this campaign."""


class PluginError(MqnetError):
    """A plug-in is unknown, registered twice, or broke its contract."""


def nearest_name(name: str, choices: Iterable[str]) -> str:
    """A sentence that names the closest choice and lists them all: " Did you mean 'energy'? Choices: …"."""
    ordered = sorted(choices)
    close = difflib.get_close_matches(name, ordered, n=1, cutoff=0.5)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return f"{hint} Choices: {', '.join(ordered) or 'none'}."
