"""A target model of images for tests: nearest class mean of 2x2 pixels. It gives logits and features, no space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from mqnet.models.base import TrainingSet
from mqnet.registry import model
from mqnet.rng import Key
from mqnet.types import Arrays


@model("pixels")
@dataclass(frozen=True)
class Pixels:
    """Nearest class mean of coarse pixels."""

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({"logits", "features"})

    def fit(self, train: TrainingSet, columns: frozenset[str], key: Key) -> Fitted:
        assert columns <= self.provides, columns
        rows = coarse(train.inputs)
        means = torch.stack(
            [rows[train.labels == k].mean(0) if (train.labels == k).any() else 9 + torch.zeros(12) for k in
             range(train.n_classes)]
        )  # fmt: skip
        return Fitted(means)

    def restore(self, state: Arrays) -> Fitted:
        return Fitted(state["means"])


@dataclass(frozen=True)
class Fitted:
    means: Tensor

    def encode(self, inputs: Tensor, columns: frozenset[str]) -> Mapping[str, Tensor]:
        assert columns <= {"logits", "features"}, columns
        rows = coarse(inputs)
        out = {"logits": -(rows[:, None] - self.means).square().sum(2), "features": rows}
        return {name: out[name] for name in columns}

    def state(self) -> Arrays:
        return {"means": self.means}


def coarse(images: Tensor) -> Tensor:
    return adaptive_avg_pool2d(images.float() / 255, 2).flatten(1)
