"""A contrastive coder: a backbone, the projection its loss compares, and CSI's head for rotations."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from mqnet.errors import StoreError
from mqnet.models.augment import all_rotations, normalised, to_unit
from mqnet.models.contrastive.config import CoderConfig, Kind
from mqnet.models.resnet import ResNet
from mqnet.types import Arrays

CHUNK = 512
"""Images encoded at once."""


class CoderNet(nn.Module):
    """Images [n, 3, S, S] (normalised) to features [n, D], projections [n, P] and rotation logits [n, 4]."""

    def __init__(self, kind: Kind, config: CoderConfig, size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.backbone = ResNet(config.net, size, generator)
        d = self.backbone.dim
        self.hidden = Dense(d, d, generator)
        self.projection = Dense(d, config.projection, generator)
        self.turns = Dense(d, 4, generator) if kind == "csi" else None

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """The features, what the loss compares, and for CSI the logits of 0, 1, 2 and 3 quarter turns."""
        features = self.backbone(images)
        projected = self.projection(torch.relu(self.hidden(features)))
        return features, projected, self.turns(features) if self.turns is not None else None


class Dense(nn.Module):
    """`x W + b` with weights drawn from a generator."""

    def __init__(self, n_in: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(n_in)
        self.weight = nn.Parameter(torch.empty(n_out, n_in).uniform_(-bound, bound, generator=generator))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x: Tensor) -> Tensor:
        """[n, n_in] to [n, n_out]."""
        return nn.functional.linear(x, self.weight, self.bias)


class Coder:
    """A trained coder: uint8 images to rows of the contrastive space."""

    def __init__(
        self, kind: Kind, config: CoderConfig, net: CoderNet, mean: Tensor, deviation: Tensor, device: torch.device
    ) -> None:
        self.kind, self.config, self.device = kind, config, device
        self.net = net.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.mean, self.deviation = mean.to(device), deviation.to(device)

    @torch.inference_mode()
    def encode(self, images: Tensor) -> Tensor:
        """The representation [n, D] (float32, on the CPU) of uint8 images [n, 3, S, S]; of each row by itself.

        In float32 whatever the training's precision: it is done once, and cosines of near neighbours are close.
        """
        self.net.eval()
        pieces = [self._encode(piece) for piece in images.split(CHUNK)]
        return torch.cat(pieces) if pieces else torch.empty(0, self.dim)

    def _encode(self, images: Tensor) -> Tensor:
        unit = to_unit(images.to(self.device, non_blocking=True))
        turns = 4 if self.kind == "csi" and self.config.rotations == 4 else 1
        pictures = normalised(all_rotations(unit) if turns == 4 else unit, self.mean, self.deviation)
        features, projected, _ = self.net(pictures.contiguous(memory_format=torch.channels_last))
        rows = (features if self.config.space == "features" else projected).float()
        return torch.cat(rows.chunk(turns), dim=1).cpu()

    @property
    def dim(self) -> int:
        """The length of a representation."""
        one = self.net.backbone.dim if self.config.space == "features" else self.config.projection
        return one * (4 if self.kind == "csi" and self.config.rotations == 4 else 1)

    def state(self) -> Arrays:
        """Weights, statistics of the normalisation layers and of the pool's colours, as plain tensors."""
        net = {f"net.{name}": tensor.detach().cpu().contiguous() for name, tensor in self.net.state_dict().items()}
        return {**net, "mean": self.mean.cpu(), "deviation": self.deviation.cpu()}


def restored(state: Mapping[str, Tensor], kind: Kind, config: CoderConfig, size: int, device: torch.device) -> Coder:
    """The coder whose `state` was stored; a missing or unknown name is an error that lists it."""
    net = CoderNet(kind, config, size, torch.Generator())
    load_net(net, state)
    return Coder(kind, config, net, state["mean"], state["deviation"], device)


def load_net(net: CoderNet, state: Mapping[str, Tensor]) -> None:
    """Give a net the weights of a state."""
    weights = {name.removeprefix("net."): tensor for name, tensor in state.items() if name.startswith("net.")}
    if differing := sorted(set(weights) ^ set(net.state_dict())):
        raise StoreError(f"the stored coder does not match this version: {', '.join(differing)}.")
    net.load_state_dict(weights)
