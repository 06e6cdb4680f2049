"""Keyed randomness: every random number is a function of (seed, purpose), never of what ran before.

A `Key` is a seed with a path, such as ``Key(7).child("round", 3, "fit")``. Asking the same key twice gives the same
stream, so a resumed campaign draws what an undisturbed one would have drawn.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Key:
    """A place in the tree of random streams: a seed and the path of purposes that leads to it."""

    seed: int
    path: tuple[str | int, ...] = ()

    def child(self, *purpose: str | int) -> Key:
        """The key of a purpose below this one."""
        return Key(self.seed, (*self.path, *purpose))

    def integer(self) -> int:
        """The 63-bit number this key stands for: blake2b over seed and path, types included."""
        text = "\x1f".join([str(self.seed), *(f"{type(part).__name__}:{part}" for part in self.path)])
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1

    def numpy(self) -> np.random.Generator:
        """A fresh numpy generator at the start of this key's stream."""
        return np.random.Generator(np.random.Philox(key=self.integer()))

    def torch(self) -> torch.Generator:
        """A fresh CPU torch generator at the start of this key's stream."""
        import torch

        return torch.Generator().manual_seed(self.integer())

    def uniform(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """One number in [0, 1) for each item, from the item's id hash [N]: independent of the items' order."""
        with np.errstate(over="ignore"):  # the mixer works modulo 2^64 on purpose
            return (_mix(hashes ^ np.uint64(self.integer())) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def hash_bytes(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A 64-bit hash [N] of each zero-padded row of bytes [N, W]; trailing zeros do not change it."""
    out = np.zeros(len(rows), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for start in range(0, rows.shape[1], 8):
            block = np.zeros((len(rows), 8), dtype=np.uint8)
            part = rows[:, start : start + 8]
            block[:, : part.shape[1]] = part
            word = block.view("<u8")[:, 0].astype(np.uint64)
            # an all-zero word is padding: skipping it makes the hash independent of the array's width
            out = np.where(word == 0, out, _mix(out ^ _mix(word + np.uint64(start + 1))))
    return out


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 finaliser: every input bit reaches every output bit."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
