"""Residual nets for images, with the outputs of their stages at hand (He et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from mqnet.errors import ConfigError

NetName = Literal["resnet8", "resnet14", "resnet18"]

LARGE = 128
"""Images from this side on get the stem for ImageNet, 7x7 with stride 2 and a pooling: a 16th of the pixels is left."""

_WIDTHS: dict[NetName, tuple[int, ...]] = {
    "resnet8": (16, 32, 64),
    "resnet14": (16, 32, 64),
    "resnet18": (64, 128, 256, 512),
}
_BLOCKS: dict[NetName, int] = {"resnet8": 1, "resnet14": 2, "resnet18": 2}


class Features(NamedTuple):
    """What a backbone says of images: the output [n, C_i, H_i, W_i] of each stage, and the last one pooled [n, D]."""

    blocks: list[Tensor]
    pooled: Tensor


class ResNet(nn.Module):
    """A backbone without a classifier: images [n, 3, S, S] (normalised floats) to `Features`.

    ResNet-18 has four stages of two blocks, 64 to 512 channels; ResNet-8 and -14 three of one or two, 16 to 64. Every
    later stage halves the side. `widths` are the stages' channels, `dim` the last of them.
    """

    def __init__(self, name: NetName, size: int, generator: torch.Generator) -> None:
        super().__init__()
        if name not in _WIDTHS:
            raise ConfigError(f"no net is called '{name}'; there are {', '.join(_WIDTHS)}.")
        self.name: NetName = name
        self.widths = _WIDTHS[name]
        self.dim = self.widths[-1]
        first = self.widths[0]
        with quiet_start():
            if size >= LARGE:
                self.stem = nn.Sequential(
                    _conv(3, first, 7, 2), nn.BatchNorm2d(first), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
                )
            else:
                self.stem = nn.Sequential(_conv(3, first, 3), nn.BatchNorm2d(first), nn.ReLU())
            stages: list[nn.Module] = []
            n_in = first
            for i, width in enumerate(self.widths):
                blocks: list[nn.Module] = []
                for j in range(_BLOCKS[name]):
                    blocks.append(Block(n_in, width, 2 if i and not j else 1))
                    n_in = width
                stages.append(nn.Sequential(*blocks))
            self.stages = nn.ModuleList(stages)
        _start(self, generator)

    def features(self, images: Tensor) -> Features:
        """The output of every stage and the last one averaged over its pixels."""
        x = self.stem(images)
        outputs: list[Tensor] = []
        for stage in self.stages:
            x = stage(x)
            outputs.append(x)
        return Features(outputs, pooled(x))

    def forward(self, images: Tensor) -> Tensor:
        """The pooled features [n, D] alone."""
        return self.features(images).pooled


class Block(nn.Module):
    """Two 3x3 convolutions with batch normalisation around a shortcut; a 1x1 convolution where the shape changes."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = _conv(n_in, n_out, 3, stride), _conv(n_out, n_out, 3)
        # nothing, once a net is folded for inference
        self.norm1: nn.Module = nn.BatchNorm2d(n_out)
        self.norm2: nn.Module = nn.BatchNorm2d(n_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or n_in != n_out:
            self.shortcut = nn.Sequential(_conv(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        """`relu(norm(conv(relu(norm(conv(x))))) + shortcut(x))`."""
        inner = torch.relu_(self.norm1(self.conv1(x)))
        return torch.relu_(self.norm2(self.conv2(inner)).add_(self.shortcut(x)))


def pooled(x: Tensor) -> Tensor:
    """Means over the pixels [n, C] of maps [n, C, H, W], float32 whatever the maps' precision."""
    return x.mean(dim=(2, 3), dtype=torch.float32)


def _conv(n_in: int, n_out: int, side: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, side, stride, side // 2, bias=False)


@contextmanager
def quiet_start() -> Generator[None]:
    """Inside, what PyTorch draws for new layers is not taken from the global stream; they get other weights anyway."""
    with torch.random.fork_rng(devices=[]):
        yield


@torch.no_grad()
def _start(net: nn.Module, generator: torch.Generator) -> None:
    """Normal weights of variance 2 / (outputs x pixels of the kernel) (He et al. 2015), from the generator alone."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            weight = module.weight
            fan_out = weight.shape[0] * weight.shape[2] * weight.shape[3]
            weight.normal_(0.0, math.sqrt(2.0 / fan_out), generator=generator)
