"""A trained image model: what it says of images, a column at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mqnet.errors import PoolError, StoreError
from mqnet.models.devices import Engine
from mqnet.models.resnet import LARGE, Features, NetName, ResNet
from mqnet.models.target_net import TargetNet, folded, load_tensors, place
from mqnet.models.training import ready_images
from mqnet.rng import Key
from mqnet.types import Arrays

MC_SAMPLES = 20
"""Dropout masks behind `mc_logits`."""
BATCH = {"cpu": 128, "cuda": 1024}
"""Images at once of 32 pixels: what a processor's cache holds, what keeps a GPU busy."""
OWN = frozenset({"mean", "deviation", "size", "mc_seed", "react_bound", "constant"})


@dataclass(frozen=True, eq=False)
class FittedImages:
    """A trained net as plain tensors; the nets that work are made when they are first used."""

    net: NetName
    tensors: Arrays
    engine: Engine
    odin_temperature: float
    odin_perturbation: float
    dropout: float

    def __post_init__(self) -> None:
        if missing := sorted(OWN - set(self.tensors)):
            raise StoreError(f"the stored image model does not match this version: {', '.join(missing)} missing.")

    def state(self) -> Arrays:
        """Weights, buffers of the normalisation, the pixels' statistics and the seed of the masks."""
        return dict(self.tensors)

    def encode(self, inputs: Tensor, columns: frozenset[str]) -> Mapping[str, Tensor]:
        """The asked columns of images uint8 [n, 3, S, S]; float32, on the CPU."""
        size = int(self.tensors["size"])
        if inputs.dtype != torch.uint8 or tuple(inputs.shape[1:]) != (3, size, size):
            raise PoolError(
                f"the model was trained on images [3, {size}, {size}] of bytes; these items are "
                f"{inputs.dtype} [{', '.join(map(str, inputs.shape[1:]))}]."
            )
        maps = size**2 // 16 if size >= LARGE else size**2  # the stem of large images leaves a 16th of the pixels
        per_batch = max(1, BATCH[self.engine.device.type] * 32**2 // maps)
        parts = [self._encode(batch, columns) for batch in inputs.split(per_batch)]
        out = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        if "embedding" in out and "features" in out:
            out["embedding"] = out["features"]  # one tensor under both names is kept once
        return out

    def _encode(self, images: Tensor, columns: frozenset[str]) -> Arrays:
        images = self.engine.put(images)
        with torch.no_grad():
            ready = ready_images(images, self._mean, self._deviation, self.engine)
            out = self._columns(self._working.backbone.features(ready), columns)
        if "odin_logits" in columns:
            out["odin_logits"] = self._odin(images)
        return {name: column.float().cpu() for name, column in out.items()}

    def _columns(self, features: Features, columns: frozenset[str]) -> Arrays:
        if self._constant:
            zero = torch.zeros_like(features.pooled)
            features = Features(features.blocks, zero)
        h, out = features.pooled, dict[str, Tensor]()
        if "logits" in columns:
            out["logits"] = self._classify(h)
        out |= dict.fromkeys(columns & {"features", "embedding"}, h)
        if "react_logits" in columns:
            out["react_logits"] = self._classify(h.clamp_max(self._react_bound))
        if "mc_logits" in columns:
            out["mc_logits"] = torch.stack([self._classify(h * mask) for mask in self._masks], dim=1)
        if "predicted_loss" in columns:
            branch = self._working.branch
            out["predicted_loss"] = torch.zeros(len(h)) if branch is None else branch(features)
        return out

    def _classify(self, h: Tensor) -> Tensor:
        if self._constant:
            return h.new_zeros(len(h), len(self._weight))
        return torch.nn.functional.linear(h, self._weight, self._bias)

    def _odin(self, images: Tensor) -> Tensor:
        """Logits / T [n, K] at `x + perturbation sign(grad_x log max_c softmax(logits / T)_c)`, x in [0, 1] (ODIN).

        In float32 whatever the net's precision: bfloat16 would round the perturbation away.
        """
        exact = Engine(self.engine.device, bfloat16=False)
        images = ready_images(images, self._mean, self._deviation, exact).requires_grad_()
        scaled = self._classify(self._exact(images)) / self.odin_temperature
        if not self._constant:
            (direction,) = torch.autograd.grad(torch.log_softmax(scaled, 1).amax(1).sum(), images)
            with torch.no_grad():
                step = self.odin_perturbation / self._deviation.view(1, 3, 1, 1)
                scaled = self._classify(self._exact(images + step * direction.sign())) / self.odin_temperature
        return scaled.detach()

    @property
    def _constant(self) -> bool:
        return bool(self.tensors["constant"])

    @cached_property
    def _whole(self) -> TargetNet:
        """The net in float32 with its normalisation folded in; only its inputs ever need a gradient."""
        weights = {name: tensor for name, tensor in self.tensors.items() if name not in OWN}
        n_outputs, branch = len(weights["classifier.weight"]), any(name.startswith("branch.") for name in weights)
        net = TargetNet(self.net, int(self.tensors["size"]), n_outputs, Key(0), branch=branch)
        try:
            load_tensors(net, weights)
        except RuntimeError as error:
            raise StoreError(f"the stored image model does not match '{self.net}' of this version: {error}") from error
        net.eval().requires_grad_(False)
        folded(net.backbone)
        place(net, self.engine.device)
        return net

    @property
    def _exact(self) -> ResNet:
        return self._whole.backbone

    @cached_property
    def _working(self) -> TargetNet:
        if not self.engine.bfloat16:
            return self._whole
        net = TargetNet(self.net, int(self.tensors["size"]), 1, Key(0), branch=False)
        folded(net.backbone)
        net.backbone.load_state_dict(self._whole.backbone.state_dict())
        place(net.bfloat16(), self.engine.device)
        net.eval().requires_grad_(False)
        net.branch = self._whole.branch  # on float32 means of the maps
        return net

    @cached_property
    def _mean(self) -> Tensor:
        return self.tensors["mean"].to(self.engine.device)

    @cached_property
    def _deviation(self) -> Tensor:
        return self.tensors["deviation"].to(self.engine.device)

    @cached_property
    def _weight(self) -> Tensor:
        return self.tensors["classifier.weight"].to(self.engine.device)

    @cached_property
    def _bias(self) -> Tensor:
        return self.tensors["classifier.bias"].to(self.engine.device)

    @cached_property
    def _react_bound(self) -> Tensor:
        return self.tensors["react_bound"].to(self.engine.device)

    @cached_property
    def _masks(self) -> Tensor:
        """Dropout masks [T, D] of the pooled features, shared by all rows: each is one sampled network."""
        generator = torch.Generator().manual_seed(int(self.tensors["mc_seed"]))
        draws = torch.rand(MC_SAMPLES, self._weight.shape[1], generator=generator)
        return ((draws >= self.dropout).float() / (1.0 - self.dropout)).to(self.engine.device)


def pixel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation [3] of each channel of uint8 images, of values in [0, 1]; exact, whatever the batch.

    A channel that hardly changes gets the deviation 1/4 of ordinary photographs: a few black images must not explode
    what comes later.
    """
    histograms = torch.stack([images[:, c].reshape(-1).bincount(minlength=256) for c in range(3)]).double()
    share, level = histograms / histograms.sum(1, keepdim=True), torch.arange(256, dtype=torch.float64) / 255.0
    mean = share @ level
    deviation = ((share @ level.square()) - mean.square()).clamp_min(0.0).sqrt()
    return mean.float(), torch.where(deviation > 1.0 / 255.0, deviation, 0.25).float()
