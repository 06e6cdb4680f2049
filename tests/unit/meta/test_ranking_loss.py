"""Ranking losses against loops over pairs."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mqnet.meta.fit import FitOptions, QuerySet, fit
from mqnet.meta.ranking_loss import all_pairs, drawn_pairs, loss_and_pull, n_pairs
from mqnet.meta.skyline import FORMS, start_net
from mqnet.meta.target import masked_cross_entropy


def slow_loss(phi: list[float], target: list[float], loss: str, eta: float) -> float:
    """The definition, pair by pair: mean over unordered pairs with different targets, each taken high first."""
    total, n = 0.0, 0
    for i in range(len(phi)):
        for j in range(len(phi)):
            if target[i] <= target[j]:
                continue
            gap = phi[i] - phi[j]
            total += {
                "logistic": math.log1p(math.exp(-gap)),
                "hinge": max(0.0, eta - gap),
                "printed": max(0.0, -gap - eta),
            }[loss]
            n += 1
    return total / max(n, 1)


values = st.lists(st.tuples(st.floats(-3, 3), st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.5])), min_size=2, max_size=12)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "printed"])
@given(values)
def test_value_is_the_loop(loss, rows):
    phi, target = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
    pairs = all_pairs(target, 10**6, torch.Generator())
    value, _ = loss_and_pull(phi, pairs, loss, 0.1)
    assert float(value) == pytest.approx(slow_loss(phi.tolist(), target.tolist(), loss, 0.1), abs=1e-12)
    assert len(pairs) == n_pairs(target)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "printed"])
def test_pull_is_the_gradient(loss):
    g = torch.Generator().manual_seed(3)
    target = torch.tensor([0.0, 0.0, 1.0, 2.0, 2.0, 0.3], dtype=torch.float64)
    pairs = all_pairs(target, 10**6, g)
    phi = torch.randn(6, generator=g, dtype=torch.float64)
    _, pull = loss_and_pull(phi, pairs, loss, 0.1)
    for i in range(6):
        step = torch.zeros(6, dtype=torch.float64)
        step[i] = 1e-6
        slope = (loss_and_pull(phi + step, pairs, loss, 0.1)[0] - loss_and_pull(phi - step, pairs, loss, 0.1)[0]) / 2e-6
        assert float(slope) == pytest.approx(float(pull[i]), abs=1e-6)


def test_ordered_pairs_of_the_printed_loss_are_the_hinge_plus_a_weaker_one():
    # METHOD 2: summed over both orders of a pair, max(0, eta - gap) + max(0, -gap - eta)
    phi, target = torch.tensor([0.05, 0.0]), torch.tensor([1.0, 0.0])
    both = [drawn_pairs(target, torch.tensor(order), order_ties=False) for order in ([0, 1], [1, 0])]
    values = [float(loss_and_pull(phi, pairs, "printed", 0.1)[0]) for pairs in both]
    assert values == pytest.approx([0.0, 0.05])
    low_above_high = [float(loss_and_pull(-phi, pairs, "printed", 0.1)[0]) for pairs in both]
    assert low_above_high == pytest.approx([0.0, 0.15])


def test_ties_say_nothing_unless_they_are_ordered():
    target = torch.tensor([0.0, 0.0, 1.0, 1.0])
    assert len(drawn_pairs(target, torch.tensor([0, 2, 1, 3]), order_ties=False)) == 0
    forced = drawn_pairs(target, torch.tensor([0, 2, 1, 3]), order_ties=True)
    assert forced.high.tolist() == [0, 2]
    assert forced.low.tolist() == [1, 3]


def test_the_printed_loss_over_all_pairs_is_the_formula_over_ordered_pairs():
    g = torch.Generator().manual_seed(0)
    phi, target = 0.2 * torch.randn(120, generator=g), torch.rand(120, generator=g)
    gap, sign = phi[:, None] - phi[None, :], torch.sign(target[:, None] - target[None, :])
    by_formula = (-sign * (gap + 0.1)).clamp_min(0)[sign != 0].mean()
    oriented = all_pairs(target, 10**6, g, oriented=True)
    assert 0.4 < float(oriented.as_drawn.double().mean()) < 0.6
    assert float(loss_and_pull(phi, oriented, "printed", 0.1)[0]) == pytest.approx(float(by_formula), rel=0.05)


def test_sampled_pairs_are_informative_and_distinct():
    target = torch.arange(100.0) % 7
    pairs = all_pairs(target, 500, torch.Generator().manual_seed(0))
    assert len(pairs) == 500
    assert bool((target[pairs.high] > target[pairs.low]).all())
    assert len(set(zip(pairs.high.tolist(), pairs.low.tolist(), strict=True))) == 500


def test_masked_cross_entropy_by_hand():
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0], [900.0, -900.0], [3.0, 1.0]])
    target = masked_cross_entropy(logits, torch.tensor([0, 1, 0, -1]))
    assert target[0] == pytest.approx(math.log1p(math.exp(-2.0)))
    assert target[1] == pytest.approx(math.log(2.0))
    assert target[2] > 0.0  # right with certainty, yet usable: above junk
    assert target[3] == 0.0


def test_too_few_pairs_leave_the_net_as_it_was():
    net = start_net(2, FORMS["default"], torch.Generator().manual_seed(0))
    only_ood = QuerySet(torch.randn(50, 2), torch.zeros(50))
    handful = QuerySet(torch.randn(5, 2), torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0]))
    assert fit(net, [only_ood, handful], FitOptions(), torch.Generator()) is net


def first_order_shares(net_inputs: int, weights: torch.Tensor) -> list[float]:
    g = torch.Generator().manual_seed(5)
    z = torch.randn(400, net_inputs, generator=g)
    target = torch.relu(z @ weights + 0.2 * torch.randn(400, generator=g))
    net = fit(start_net(net_inputs, FORMS["default"], g), [QuerySet(z, target)], FitOptions(), g)
    base = torch.zeros(1, net_inputs)
    return [
        float(net.score(base + torch.eye(net_inputs)[i]) - net.score(base - torch.eye(net_inputs)[i]))
        for i in range(net_inputs)
    ]


def test_training_finds_which_input_matters():
    more_purity = first_order_shares(2, torch.tensor([2.0, 0.2]))
    more_information = first_order_shares(2, torch.tensor([0.2, 2.0]))
    assert more_purity[0] > 1.5 * more_purity[1]
    assert more_information[1] > 1.5 * more_information[0]
    third = first_order_shares(3, torch.tensor([0.2, 0.2, 2.0]))
    assert third[2] > 1.5 * max(third[:2])
