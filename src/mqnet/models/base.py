"""What the loop asks of a target model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from mqnet.rng import Key
from mqnet.types import Arrays

INPUT_COLUMNS = frozenset({"embedding", "contrastive", "contrastive_semantic"})
"""On pools of vectors the vector itself is the embedding and both contrastive representations (METHOD 3)."""


@dataclass(frozen=True)
class TrainingSet:
    """Labelled items: inputs [n, …] with class numbers [n], and the inputs [m, …] of items answered OOD."""

    inputs: Tensor
    labels: Tensor
    unknown: Tensor
    n_classes: int


class FittedModel(Protocol):
    """A trained model: encodes items and can be stored."""

    def encode(self, inputs: Tensor, columns: frozenset[str]) -> Mapping[str, Tensor]:
        """The asked columns of these items, a row each; the same object may stand under several names."""
        ...

    def state(self) -> Arrays:
        """Everything `TargetModel.restore` needs, as plain tensors; empty when the model cannot be stored."""
        ...


class TargetModel(Protocol):
    """A recipe for training: its options are set when it is made."""

    @property
    def provides(self) -> frozenset[str]:
        """The columns its fitted models can encode."""
        ...

    def fit(self, train: TrainingSet, columns: frozenset[str], key: Key) -> FittedModel:
        """A model trained from scratch. `columns` says what will be asked of it; `key` is its only randomness."""
        ...

    def restore(self, state: Arrays) -> FittedModel:
        """The fitted model a state came from."""
        ...
