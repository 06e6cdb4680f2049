"""A backbone with a classifier and a loss-prediction branch: what is trained on labelled images."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import fusion

from mqnet.models.loss_prediction import LossBranch, start_linear
from mqnet.models.resnet import Block, Features, NetName, ResNet, quiet_start
from mqnet.rng import Key


class Said(NamedTuple):
    """What the net says of images: logits [n, K] and, if it has the branch, the losses it expects [n]; float32."""

    logits: Tensor
    predicted: Tensor | None


class TargetNet(nn.Module):
    """A residual net, a linear classifier on its pooled features, and a loss branch unless `branch` is off."""

    def __init__(self, name: NetName, size: int, n_outputs: int, key: Key, *, branch: bool = True) -> None:
        super().__init__()
        self.backbone = ResNet(name, size, key.child("weights").torch())
        with quiet_start():
            self.classifier = nn.Linear(self.backbone.dim, n_outputs)
        start_linear(self.classifier, key.child("classifier").torch())
        # from a key of its own: with and without it the rest starts alike
        self.branch = LossBranch(self.backbone.widths, key.child("branch").torch()) if branch else None

    def forward(self, images: Tensor, mask: Tensor | None = None, joint: bool = False) -> Said:
        """`mask` [n, D] multiplies the pooled features (dropout); `joint` lets the branch's gradient into the net."""
        features = self.backbone.features(images)
        kept = features.pooled if mask is None else features.pooled * mask
        logits = self.classifier(kept).float()
        if self.branch is None:
            return Said(logits, None)
        seen = features if joint else Features([block.detach() for block in features.blocks], features.pooled.detach())
        return Said(logits, self.branch(seen).float())


def folded(net: ResNet) -> ResNet:
    """The same net for inference: each normalisation is part of the convolution before it."""
    stem = net.stem
    assert isinstance(stem, nn.Sequential)
    stem[0], stem[1] = _folded(stem[0], stem[1]), nn.Identity()
    for block in net.modules():
        if isinstance(block, Block):
            block.conv1, block.norm1 = _folded(block.conv1, block.norm1), nn.Identity()
            block.conv2, block.norm2 = _folded(block.conv2, block.norm2), nn.Identity()
            if isinstance(block.shortcut, nn.Sequential):
                block.shortcut = _folded(block.shortcut[0], block.shortcut[1])
    return net


def _folded(conv: nn.Module, norm: nn.Module) -> nn.Conv2d:
    assert isinstance(conv, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    return fusion.fuse_conv_bn_eval(conv.eval(), norm.eval())


def place(net: nn.Module, device: torch.device) -> None:
    """Move a net to a device, the weights of its convolutions with the channels of a pixel side by side."""
    net.to(device)
    for parameter in net.parameters():
        if parameter.ndim == 4:
            # a copy, not `contiguous`: a 1x1 kernel counts as either layout, and must have the strides of its gradient
            layout = torch.empty_like(parameter.data, memory_format=torch.channels_last)
            parameter.data = layout.copy_(parameter.data)


def plain_tensors(net: nn.Module) -> dict[str, Tensor]:
    """Weights and buffers by name, as contiguous copies on the CPU."""
    tensors = net.state_dict()
    return {name: tensors[name].detach().to("cpu", copy=True).contiguous() for name in tensors}


def load_tensors(net: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give a net the weights and buffers stored by `plain_tensors`."""
    with torch.no_grad():
        net.load_state_dict(tensors)
