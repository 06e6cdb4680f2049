"""A training's checkpoints in the campaign's folder: one file, whole or not there, called by what it is a state of."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mqnet.store.blobs import write_durably
from mqnet.types import Arrays

DIGEST = "digest"
FOLDER = "training"


@dataclass(frozen=True)
class FolderCheckpoints:
    """`Checkpoints` as `<folder>/<name>.safetensors`."""

    folder: Path

    def load(self, name: str) -> Arrays | None:
        """The state of this name; None where there is none, or one that is not as it was written.

        Training anew gives the same model, so a damaged file costs time and nothing else.
        """
        try:
            arrays = load(self._path(name).read_bytes())
        except (FileNotFoundError, SafetensorError):
            return None
        digest = arrays.pop(DIGEST, np.empty(0, dtype=np.uint8))
        if digest.tobytes() != _digest(arrays):
            return None
        return {key: torch.from_numpy(np.array(array)) for key, array in arrays.items()}

    def save(self, name: str, state: Arrays) -> None:
        """Write the state and then drop those of other trainings: one of them goes on at a time."""
        arrays = {key: np.asarray(tensor.detach().numpy(), order="C") for key, tensor in state.items()}
        digest = np.frombuffer(_digest(arrays), dtype=np.uint8)
        path = self._path(name)
        write_durably(path, save({**arrays, DIGEST: digest}))
        for other in self.folder.iterdir():
            if other != path:
                other.unlink(missing_ok=True)

    def clear(self) -> None:
        """Nothing is in training any more."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"


def _digest(arrays: dict[str, NDArray[np.generic]]) -> bytes:
    digest = hashlib.blake2b(digest_size=20)
    for key in sorted(arrays):
        digest.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    return digest.digest()
