"""The loss-prediction branch: hand-computed ranking losses, a spelled-out forward pass, where its gradient goes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mqnet.models.loss_prediction import LossBranch, loss_ranking
from mqnet.models.resnet import Features
from mqnet.models.target_net import TargetNet
from mqnet.rng import Key


@pytest.mark.parametrize(
    ("predicted", "losses", "expected"),
    [
        # pairs (0, 2) and (1, 3): right by 2, so nothing; wrong by 0.5, so 1.5; the mean is 0.75
        ([2.0, 0.0, 0.0, 0.5], [1.0, 3.0, 0.0, 1.0], 0.75),
        # right, but by 0.4 only
        ([0.4, 0.0], [5.0, 1.0], 0.6),
        # a tie has no order: the margin stays, and no gradient comes of it
        ([0.3, 0.9], [1.0, 1.0], 1.0),
        # the third has no partner
        ([0.0, 1.5, 9.0], [0.0, 1.0, 0.0], 0.0),
        ([7.0], [1.0], 0.0),
    ],
)
def test_ranking_loss_by_hand(predicted: list[float], losses: list[float], expected: float) -> None:
    assert float(loss_ranking(torch.tensor(predicted), torch.tensor(losses))) == pytest.approx(expected)


def test_ranking_loss_equals_a_loop_and_leaves_its_targets_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    predicted = torch.randn(20, generator=generator).requires_grad_()
    losses = torch.randn(20, generator=generator).requires_grad_()
    found = loss_ranking(predicted, losses)
    slow = torch.zeros(())
    for i in range(10):
        sign = 1.0 if losses[i] > losses[i + 10] else -1.0
        slow = slow + torch.clamp(1.0 - sign * (predicted[i] - predicted[i + 10]), min=0.0) / 10
    torch.testing.assert_close(found, slow)
    found.backward()
    assert losses.grad is None
    assert predicted.grad is not None
    (expected,) = torch.autograd.grad(slow, predicted)
    torch.testing.assert_close(predicted.grad, expected)


def test_branch_is_pooling_a_layer_each_and_a_sum() -> None:
    generator = torch.Generator().manual_seed(1)
    branch = LossBranch([4, 6], generator)
    blocks: list[Tensor] = [torch.randn(3, 4, 8, 8, generator=generator), torch.randn(3, 6, 4, 4, generator=generator)]
    w = dict(branch.named_parameters())
    hidden = [
        torch.relu(block.mean((2, 3)) @ w[f"inner.{i}.weight"].T + w[f"inner.{i}.bias"])
        for i, block in enumerate(blocks)
    ]
    expected = torch.cat(hidden, 1) @ w["outer.weight"][0] + w["outer.bias"]
    torch.testing.assert_close(branch(Features(blocks, blocks[-1].mean((2, 3)))), expected)
    assert w["inner.0.weight"].shape == (128, 4)


@pytest.mark.parametrize("joint", [True, False])
def test_gradient_reaches_the_net_only_if_it_may(joint: bool) -> None:
    net = TargetNet("resnet8", 8, 3, Key(0))
    said = net(torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(2)), None, joint)
    assert said.predicted is not None
    said.predicted.sum().backward()
    touched = [parameter.grad is not None for parameter in net.backbone.parameters()]
    assert all(touched) if joint else not any(touched)
    assert net.branch is not None
    assert all(parameter.grad is not None for parameter in net.branch.parameters())
