"""The `head` target model: an MLP over frozen features, what a user with a laptop runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mqnet.models.base import INPUT_COLUMNS, TrainingSet
from mqnet.models.head import Head, HeadConfig, encode, fit_head, mc_logits
from mqnet.registry import model
from mqnet.rng import Key
from mqnet.types import Arrays

MC_SAMPLES = 20
"""Dropout masks behind `mc_logits`."""


@model("head")
@dataclass(frozen=True)
class MlpHead(HeadConfig):
    """An MLP head on vectors, trained a fixed number of steps: logits, features, predicted loss, dropout samples."""

    @property
    def provides(self) -> frozenset[str]:
        """Logits [N,K], features [N,H], predicted_loss [N], mc_logits [N,T,K], and the inputs themselves."""
        return frozenset({"logits", "features", "predicted_loss", "mc_logits"}) | INPUT_COLUMNS

    def fit(self, train: TrainingSet, columns: frozenset[str], key: Key) -> FittedHead:
        """A head trained from scratch; its loss branch reaches the hidden layer only if `predicted_loss` is asked for."""
        mc_key = key.child("mc")
        if len(train.inputs) == 0:
            return FittedHead(_constant_head(train, self), mc_key.integer())
        config: HeadConfig = self
        if self.loss_prediction == "detached" and "predicted_loss" in columns:
            config = replace(self, loss_prediction="joint")
        head = fit_head(
            train.inputs,
            train.labels,
            train.n_classes,
            config,
            key.torch(),
            unknown=train.unknown if len(train.unknown) else None,
        )
        return FittedHead(head, mc_key.integer())

    def restore(self, state: Arrays) -> FittedHead:
        """The head a state came from."""
        arrays = dict(state)
        seed = int(arrays.pop("mc_seed"))
        return FittedHead(Head.from_tensors(arrays), seed)


@dataclass(frozen=True)
class FittedHead:
    """A trained head and the seed of its dropout masks."""

    head: Head
    mc_seed: int

    def encode(self, inputs: Tensor, columns: frozenset[str]) -> Mapping[str, Tensor]:
        """The asked columns of a chunk of vectors [n, D]."""
        out: dict[str, Tensor] = dict.fromkeys(columns & INPUT_COLUMNS, inputs)
        if columns & {"logits", "features", "predicted_loss"}:
            encoded = encode(self.head, inputs)
            out |= {name: column for name, column in encoded.items() if name in columns}  # type: ignore[misc]  # pyright: ignore
        if "mc_logits" in columns:
            samples = mc_logits(self.head, inputs, MC_SAMPLES, torch.Generator().manual_seed(self.mc_seed))
            out["mc_logits"] = samples.transpose(0, 1).contiguous()
        return out

    def state(self) -> Arrays:
        """The head's tensors and the seed of its masks."""
        return {**self.head.to_tensors(), "mc_seed": torch.tensor(self.mc_seed)}


def _constant_head(train: TrainingSet, config: HeadConfig) -> Head:
    """The head before any known class was answered: every class equally likely, every item alike."""
    d, h, k = train.inputs.shape[1], config.hidden, train.n_classes
    zero = torch.zeros
    return Head(
        zero(d), torch.ones(()), zero(d, h), zero(h), zero(h, k), zero(k), zero(h, 1), zero(1), zero(1),
        torch.tensor(config.dropout), torch.tensor(False),
    )  # fmt: skip
