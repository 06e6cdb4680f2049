"""The `head` target model: an MLP over frozen features, what a user with a laptop runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mqnet.errors import PoolError
from mqnet.models.base import INPUT_COLUMNS, TrainingSet
from mqnet.models.head import Head, HeadConfig, encode, fit_head, mc_logits
from mqnet.models.score_options import check_score_options, react_bound
from mqnet.registry import model
from mqnet.rng import Key
from mqnet.types import Arrays

MC_SAMPLES = 20
"""Dropout masks behind `mc_logits`."""


@model("head")
@dataclass(frozen=True)
class MlpHead(HeadConfig):
    """An MLP head on vectors, trained a fixed number of steps: logits, features, predicted loss, dropout samples."""

    odin_temperature: float = 1000.0
    odin_perturbation: float = 0.05
    """In units of the head's `scale`, the root mean square of a centred input: inputs of any unit move alike."""
    react_percentile: float = 90.0
    """Of all hidden activations of the labelled known items; activations above it are clipped (Sun et al. 2021)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score_options(self.odin_temperature, self.odin_perturbation, self.react_percentile)

    @property
    def provides(self) -> frozenset[str]:
        """Logits, odin_logits, react_logits [N,K], features [N,H], mc_logits [N,T,K], inputs, predicted_loss [N].

        Without a loss branch (`loss_prediction = "off"`) there is no predicted loss.
        """
        own = frozenset({"logits", "features", "mc_logits", "odin_logits", "react_logits"}) | INPUT_COLUMNS
        return own if self.loss_prediction == "off" else own | {"predicted_loss"}

    def check_input(self, example: Tensor) -> None:
        """Vectors only: images are for the residual nets, or for an encoder first."""
        if example.ndim != 2:
            raise PoolError(
                "the model 'head' takes vectors, and the pool holds images. Choose the model 'resnet8' or 'resnet18', "
                "or make vectors of them with `mqnet embed`."
            )

    def fit(self, train: TrainingSet, columns: frozenset[str], key: Key) -> FittedHead:
        """A head trained from scratch; its loss branch reaches the hidden layer if `predicted_loss` is asked for."""
        mc_key = key.child("mc")
        if len(train.inputs) == 0:
            return self._fitted(_constant_head(train, self), torch.zeros(()), mc_key.integer())
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
        bound = react_bound(encode(head, train.inputs)["features"], self.react_percentile)
        return self._fitted(head, bound, mc_key.integer())

    def _fitted(self, head: Head, react_bound: Tensor, mc_seed: int) -> FittedHead:
        return FittedHead(head, react_bound, self.odin_temperature, self.odin_perturbation, mc_seed)

    def restore(self, state: Arrays) -> FittedHead:
        """The head a state came from."""
        arrays = dict(state)
        seed, bound = int(arrays.pop("mc_seed")), arrays.pop("react_bound")
        return self._fitted(Head.from_tensors(arrays), bound, seed)


@dataclass(frozen=True)
class FittedHead:
    """A trained head, the bound of its rectified activations and the seed of its dropout masks."""

    head: Head
    react_bound: Tensor  # []
    odin_temperature: float
    odin_perturbation: float
    mc_seed: int

    def encode(self, inputs: Tensor, columns: frozenset[str]) -> Mapping[str, Tensor]:
        """The asked columns of a chunk of vectors [n, D]."""
        out: dict[str, Tensor] = dict.fromkeys(columns & INPUT_COLUMNS, inputs)
        if columns & {"logits", "features", "predicted_loss", "react_logits"}:
            encoded = encode(self.head, inputs)
            if "react_logits" in columns:
                out["react_logits"] = encoded["features"].clamp_max(self.react_bound) @ self.head.w2 + self.head.b2
            out |= {name: column for name, column in encoded.items() if name in columns}  # type: ignore[misc]  # pyright: ignore
        if "odin_logits" in columns:
            out["odin_logits"] = odin_logits(self.head, inputs, self.odin_temperature, self.odin_perturbation)
        if "mc_logits" in columns:
            samples = mc_logits(self.head, inputs, MC_SAMPLES, torch.Generator().manual_seed(self.mc_seed))
            out["mc_logits"] = samples.transpose(0, 1).contiguous()
        return out

    def state(self) -> Arrays:
        """The head's tensors, the bound of its rectified activations and the seed of its masks."""
        return {**self.head.to_tensors(), "react_bound": self.react_bound, "mc_seed": torch.tensor(self.mc_seed)}


def odin_logits(head: Head, inputs: Tensor, temperature: float, perturbation: float) -> Tensor:
    """Logits / T [n, K] at `x + perturbation * scale * sign(grad_x log max_c softmax(logits / T)_c)` (ODIN).

    In float32 whatever the head's precision: bfloat16 would round the perturbation away.
    """
    head = replace(head, bfloat16=torch.tensor(False))
    direction = odin_gradient(head, inputs, temperature).sign_()
    moved = direction.mul_(perturbation * head.scale).add_(inputs)
    return encode(head, moved)["logits"].div_(temperature)


def odin_gradient(head: Head, inputs: Tensor, temperature: float) -> Tensor:
    """`grad_x log max_c softmax(logits / T)_c` [n, D], by hand; float32."""
    encoded = encode(head, inputs)
    d_logits = torch.softmax(encoded["logits"] / temperature, 1).neg_()
    d_logits.scatter_add_(1, encoded["logits"].argmax(1, keepdim=True), torch.ones(len(inputs), 1))
    d_hidden = (d_logits @ head.w2.T).mul_(encoded["features"] > 0)
    return (d_hidden @ head.w1.T).div_(temperature * head.scale)


def _constant_head(train: TrainingSet, config: HeadConfig) -> Head:
    """The head before any known class was answered: every class equally likely, every item alike."""
    d, h, k = train.inputs.shape[1], config.hidden, train.n_classes
    zero = torch.zeros
    return Head(
        zero(d), torch.ones(()), zero(d, h), zero(h), zero(h, k), zero(k), zero(h, 1), zero(1), zero(1),
        torch.tensor(config.dropout), torch.tensor(False),
    )  # fmt: skip
