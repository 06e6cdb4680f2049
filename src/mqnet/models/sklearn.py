"""The `sklearn` target model: any scikit-learn classifier with `predict_proba`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.models.base import INPUT_COLUMNS, TrainingSet
from mqnet.registry import model
from mqnet.rng import Key
from mqnet.types import Arrays

FLOOR = 1e-12
"""Probabilities are kept above this before the logarithm: a forest gives exact zeros."""


@model("sklearn")
@dataclass(frozen=True)
class SklearnModel:
    """A scikit-learn classifier by its import path; gives logits (log probabilities).

    It is refitted rather than stored: the labels and the key determine it, and nothing pickled is ever loaded.
    """

    classifier: str = "sklearn.linear_model.LogisticRegression"
    options: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        self._make(Key(0))

    @property
    def provides(self) -> frozenset[str]:
        """Logits [N,K] and the inputs themselves."""
        return frozenset({"logits"}) | INPUT_COLUMNS

    def _make(self, key: Key) -> Any:
        module, _, name = self.classifier.rpartition(".")
        try:
            if not module.startswith("sklearn."):
                raise ImportError("only classes of scikit-learn are imported")
            kind = getattr(importlib.import_module(module), name)
            options = dict(self.options)
            if "random_state" in inspect.signature(kind).parameters:
                options.setdefault("random_state", key.integer() % 2**32)
            made = kind(**options)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ConfigError(f"the classifier '{self.classifier}' cannot be made: {error}") from error
        if not hasattr(made, "predict_proba"):
            raise ConfigError(
                f"'{self.classifier}' has no predict_proba with these options; mqnet needs probabilities."
            )
        return made

    def fit(self, train: TrainingSet, columns: frozenset[str], key: Key) -> FittedSklearn:
        """The classifier fitted to the known items; with fewer than two classes seen it is constant."""
        seen = train.labels.unique()
        if len(seen) < 2:
            only = int(seen[0]) if len(seen) else None
            return FittedSklearn(None, np.empty(0, dtype=np.int64), train.n_classes, only)
        classifier = self._make(key)
        classifier.fit(train.inputs.float().numpy(), train.labels.numpy())
        return FittedSklearn(classifier, np.asarray(classifier.classes_, dtype=np.int64), train.n_classes, None)

    def restore(self, state: Arrays) -> FittedSklearn:
        """Never called: the state is empty, and an empty state means that the loop refits."""
        raise ConfigError("scikit-learn models are refitted, not restored.")


@dataclass(frozen=True)
class FittedSklearn:
    """A fitted classifier and the class numbers of its probability columns."""

    classifier: Any
    classes: np.ndarray[Any, np.dtype[np.int64]]
    n_classes: int
    only_class: int | None

    def encode(self, inputs: Tensor, columns: frozenset[str]) -> Mapping[str, Tensor]:
        """The asked columns of a chunk of vectors [n, D]."""
        out: dict[str, Tensor] = dict.fromkeys(columns & INPUT_COLUMNS, inputs)
        if "logits" in columns:
            out["logits"] = self._logits(inputs)
        return out

    def _logits(self, inputs: Tensor) -> Tensor:
        if self.classifier is None:
            flat = torch.zeros(len(inputs), self.n_classes)
            if self.only_class is not None:
                flat[:, self.only_class] = 1.0  # one class seen: it is predicted, without pretending to be sure
            return flat
        probabilities = torch.full((len(inputs), self.n_classes), FLOOR, dtype=torch.float64)
        if len(inputs):
            found = torch.from_numpy(np.asarray(self.classifier.predict_proba(inputs.float().numpy())))
            probabilities[:, torch.from_numpy(self.classes)] = found.double().clamp_min(FLOOR)
        return probabilities.log().float()

    def state(self) -> Arrays:
        """Empty: see `SklearnModel`."""
        return {}
