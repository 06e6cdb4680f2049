"""The nets: as large as published, stages as they should be, equal to a spelled-out forward pass."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from mqnet.errors import ConfigError
from mqnet.models.resnet import NetName, ResNet


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def n_parameters(net: ResNet) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


@pytest.mark.parametrize(
    ("name", "size", "n"),
    [
        # published sizes less the classifier: 11,173,962 - 5,130 (CIFAR stem), 11,689,512 - 513,000 (ImageNet stem)
        ("resnet18", 32, 11_168_832),
        ("resnet18", 224, 11_176_512),
        # by hand: stem 464, stages 4,672 + 14,528 + 57,728
        ("resnet8", 32, 77_392),
        # and a second block each: 4,672 + 18,560 + 73,984
        ("resnet14", 32, 174_608),
    ],
)
def test_sizes_are_the_published_ones(name: NetName, size: int, n: int) -> None:
    assert n_parameters(ResNet(name, size, seeded())) == n


@pytest.mark.parametrize(
    ("name", "size", "sides"),
    [
        ("resnet18", 32, (32, 16, 8, 4)),
        ("resnet18", 224, (56, 28, 14, 7)),
        ("resnet8", 32, (32, 16, 8)),
        ("resnet14", 28, (28, 14, 7)),
    ],
)
def test_stages_halve_the_side(name: NetName, size: int, sides: tuple[int, ...]) -> None:
    net = ResNet(name, size, seeded()).eval()
    blocks, pooled = net.features(torch.randn(2, 3, size, size))
    expected = [(2, width, side, side) for width, side in zip(net.widths, sides, strict=True)]
    assert [tuple(block.shape) for block in blocks] == expected
    torch.testing.assert_close(pooled, blocks[-1].mean((2, 3)))
    assert pooled.shape == (2, net.dim)


def slow_features(net: ResNet, x: Tensor) -> list[Tensor]:
    """ResNet-8 in training, from its weights by name: convolutions and normalisation written out."""
    w = dict(net.named_parameters())

    def conv(x: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = w[f"{name}.weight"]
        return functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)

    def norm(x: Tensor, name: str) -> Tensor:
        mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
        scale, shift = w[f"{name}.weight"].view(1, -1, 1, 1), w[f"{name}.bias"].view(1, -1, 1, 1)
        return (x - mean) / (variance + 1e-5).sqrt() * scale + shift

    x, out = functional.relu(norm(conv(x, "stem.0"), "stem.1")), []
    for i in range(3):
        at, stride = f"stages.{i}.0", 2 if i else 1
        inner = functional.relu(norm(conv(x, f"{at}.conv1", stride), f"{at}.norm1"))
        past = norm(conv(x, f"{at}.shortcut.0", stride), f"{at}.shortcut.1") if i else x
        x = functional.relu(norm(conv(inner, f"{at}.conv2"), f"{at}.norm2") + past)
        out.append(x)
    return out


def test_resnet8_is_the_forward_pass_spelled_out() -> None:
    net, x = ResNet("resnet8", 32, seeded()), torch.randn(4, 3, 32, 32, generator=seeded(1))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=seeded(2)))
        for fast, slow in zip(net.features(x).blocks, slow_features(net, x), strict=True):
            torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-4)


def test_a_start_is_its_generators_and_no_one_elses() -> None:
    one, same, other = (ResNet("resnet8", 32, seeded(seed)) for seed in (3, 3, 4))
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, same.state_dict()[name])
    assert not torch.equal(one.stem[0].weight, other.stem[0].weight)
    last = ResNet("resnet18", 32, seeded()).stages[3][1].conv2.weight
    assert last.std().item() == pytest.approx((2.0 / (9 * 512)) ** 0.5, rel=0.01)


def test_an_unknown_net_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="resnet9"):
        ResNet("resnet9", 32, seeded())  # pyright: ignore[reportArgumentType]
