"""The target models for images: `resnet8` and `resnet14` for processors, `resnet18` as in the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import torch
from torch import Tensor

from mqnet.errors import InputError, PoolError
from mqnet.models.base import TrainingSet
from mqnet.models.checkpoints import Checkpoints
from mqnet.models.devices import Engine
from mqnet.models.encode import Watcher
from mqnet.models.fitted_images import FittedImages, pixel_statistics
from mqnet.models.head import soft_targets
from mqnet.models.parallel import launched, train_in_group, train_together
from mqnet.models.resnet import NetName
from mqnet.models.score_options import check_score_options, react_bound
from mqnet.models.target_net import TargetNet, plain_tensors
from mqnet.models.training import ImageRecipe, Resident, name_of, saver_for, train
from mqnet.registry import model
from mqnet.rng import Key
from mqnet.types import Arrays

COLUMNS = frozenset({"logits", "features", "embedding", "predicted_loss", "mc_logits", "odin_logits", "react_logits"})
HOW_ONLY = frozenset({"device", "precision"})
"""Options that may be "auto": the engine's label stands for them in a training's name."""


@dataclass(frozen=True)
class ImageModel(ImageRecipe):
    """A residual net on images, trained from scratch each round; its pooled features are the embedding."""

    net: ClassVar[NetName]

    odin_temperature: float = 1000.0
    odin_perturbation: float = 0.0014
    """Of the range of a pixel: Liang et al. 2018's value."""
    react_percentile: float = 90.0
    """Of all pooled activations of the labelled known items; activations above it are clipped (Sun et al. 2021)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score_options(self.odin_temperature, self.odin_perturbation, self.react_percentile)

    @property
    def provides(self) -> frozenset[str]:
        """Logits, odin_logits, react_logits [N,K], mc_logits [N,T,K], features and embedding [N,D], predicted_loss [N].

        Without a loss branch (`loss_prediction = "off"`) there is no predicted loss.
        """
        return COLUMNS - {"predicted_loss"} if self.loss_prediction == "off" else COLUMNS

    def check_input(self, example: Tensor) -> None:
        """Images only: vectors are for the model `head`."""
        if example.dtype != torch.uint8 or example.ndim != 4:
            shape = ", ".join(map(str, example.shape[1:]))
            raise PoolError(
                f"the model '{self.net}' takes images, and the pool holds vectors [{shape}]. "
                "Choose the model 'head' for them."
            )

    def fit(self, train: TrainingSet, columns: frozenset[str], key: Key) -> FittedImages:
        """A net trained from scratch; its loss branch reaches the net if `predicted_loss` is asked for."""
        return self.fit_resumable(train, columns, key, checkpoints=None, watch=None)

    def fit_resumable(
        self,
        train: TrainingSet,
        columns: frozenset[str],
        key: Key,
        *,
        checkpoints: Checkpoints | None,
        watch: Watcher | None,
    ) -> FittedImages:
        """The same net, continued from where a killed training of it was."""
        if train.inputs.ndim == 4:
            self.check_input(train.inputs)
        mc_key, size = key.child("mc"), train.inputs.shape[-1]
        if len(train.inputs) == 0:
            net = TargetNet(self.net, size, train.n_classes, key, branch=False)
            return self._fitted(_constant_state(net, size, mc_key))
        _check(train)
        engine = Engine.choose(self.device, self.precision)
        unknown = train.unknown if self.unknown_aware != "off" else train.unknown[:0]
        targets = soft_targets(train.labels, train.n_classes, len(unknown), self.unknown_aware, self.exposure_weight)
        images = torch.cat([train.inputs, unknown]) if len(unknown) else train.inputs
        mean, deviation = pixel_statistics(images)
        net = TargetNet(self.net, size, targets.shape[1], key, branch=self.loss_prediction != "off")
        joint = self.loss_prediction == "joint" or (self.loss_prediction == "detached" and "predicted_loss" in columns)
        name = name_of(*self._defining(), launched(), joint, engine.label, torch.__version__, key, images, targets)
        self._train(net, Resident(images, targets, mean, deviation), key, engine, joint, checkpoints, name, watch)
        state = _cut_to(plain_tensors(net), train.n_classes) | {
            "mean": mean, "deviation": deviation, "size": torch.tensor(size), "mc_seed": torch.tensor(mc_key.integer()),
            "react_bound": torch.tensor(float("inf")), "constant": torch.tensor(False),
        }  # fmt: skip
        features = self._fitted(state).encode(train.inputs, frozenset({"features"}))["features"]
        return self._fitted(state | {"react_bound": react_bound(features, self.react_percentile)})

    def restore(self, state: Arrays) -> FittedImages:
        """The net a state came from."""
        return self._fitted(dict(state))

    def _train(
        self,
        net: TargetNet,
        data: Resident,
        key: Key,
        engine: Engine,
        joint: bool,
        checkpoints: Checkpoints | None,
        name: str,
        watch: Watcher | None,
    ) -> None:
        if max(self.processes, launched()) > 1:
            together = train_in_group if launched() > 1 else train_together
            together(net, data, self, key, engine, joint=joint, checkpoints=checkpoints, name=name, watch=watch)
            return
        there = Resident.of(data.images, data.targets, data.mean, data.deviation, engine)
        train(net, there, self, key, engine, joint=joint, saver=saver_for(checkpoints, name), watch=watch)

    def _defining(self) -> list[object]:
        return [self.net, *((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in HOW_ONLY)]

    def _fitted(self, state: Arrays) -> FittedImages:
        engine = Engine.choose(self.device, self.precision)
        rate = self.dropout or 0.3
        return FittedImages(self.net, state, engine, self.odin_temperature, self.odin_perturbation, rate)


@model("resnet8")
@dataclass(frozen=True)
class ResNet8(ImageModel):
    """ResNet-8 (16-32-64 channels) on images: what a processor trains in a minute a round."""

    net: ClassVar[NetName] = "resnet8"
    n_steps: int = 1_000


@model("resnet14")
@dataclass(frozen=True)
class ResNet14(ImageModel):
    """ResNet-14 (16-32-64 channels, two blocks a stage) on images: a little better than ResNet-8, at twice the time."""

    net: ClassVar[NetName] = "resnet14"
    n_steps: int = 2_000


@model("resnet18")
@dataclass(frozen=True)
class ResNet18(ImageModel):
    """ResNet-18 on images, with the stem for 32 or 224 pixels, trained as in the paper: for a GPU."""

    net: ClassVar[NetName] = "resnet18"


def _check(train: TrainingSet) -> None:
    if train.inputs.shape[0] != len(train.labels):
        raise InputError(f"{len(train.inputs)} images but {len(train.labels)} labels were given.")
    if int(train.labels.min()) < 0 or int(train.labels.max()) >= train.n_classes:
        raise InputError(f"labels must be one class in 0..{train.n_classes - 1} for each of the images.")


def _cut_to(tensors: Mapping[str, Tensor], n_classes: int) -> Arrays:
    """The tensors without the extra class, which is dropped after training."""
    cut = {"classifier.weight", "classifier.bias"}
    return {name: tensor[:n_classes].clone() if name in cut else tensor for name, tensor in tensors.items()}


def _constant_state(net: TargetNet, size: int, mc_key: Key) -> Arrays:
    """The model before any known class was answered: every class equally likely, every item alike."""
    return plain_tensors(net) | {
        "mean": torch.zeros(3), "deviation": torch.ones(3), "size": torch.tensor(size),
        "mc_seed": torch.tensor(mc_key.integer()), "react_bound": torch.tensor(0.0), "constant": torch.tensor(True),
    }  # fmt: skip
