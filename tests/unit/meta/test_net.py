"""MetaNet: ranking, learning and the degenerate cases of METHOD 2, on plain tensors."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from mqnet.errors import ConfigError, InputError
from mqnet.meta.fit import QuerySet
from mqnet.meta.inputs import drawn, fixed_rule, meta_input, normal_ranks
from mqnet.meta.net import MetaNet, settings_with
from mqnet.meta.value import calibrate, log_cost, log_informativeness, log_value, onto_scale

N = 400


def scores(seed: int, n: int = N) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, generator=g), torch.rand(n, generator=g)


def answered(meta: MetaNet, seed: int, n: int = 120, known=None) -> None:
    """One round of somebody's loop: score, query the top, answer, fit."""
    purity, informativeness = scores(seed)
    query = meta.score(purity, informativeness).argsort(descending=True)[:n]
    g = torch.Generator().manual_seed(seed + 1000)
    is_known = torch.sigmoid(2 * purity[query]) > torch.rand(n, generator=g) if known is None else known[:n]
    meta.fit(purity[query], informativeness[query], loss=informativeness[query] + 0.05, is_known=is_known)


def uniform(n: int = N) -> torch.Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def test_first_round_is_the_expected_value():
    purity, informativeness = scores(0)
    meta = MetaNet(log_odds=True)
    expected = torch.nn.functional.logsigmoid(purity.double()) + log_informativeness(informativeness)
    assert torch.allclose(meta.score(purity, informativeness), expected)


def test_paper_variant_starts_with_the_sum_of_the_exp_scores():
    purity, informativeness = scores(0)
    meta = MetaNet("paper")
    z = [
        ((s.double() - s.double().mean()) / s.double().std(correction=0)).clamp(-4, 4)
        for s in (purity, informativeness)
    ]
    assert torch.allclose(meta.score(purity, informativeness), z[0].exp() + z[1].exp(), rtol=1e-5)


def test_without_an_ood_answer_informativeness_alone_ranks():
    meta = MetaNet()
    answered(meta, 1, known=torch.ones(200, dtype=torch.bool))
    assert meta.net is None
    purity, informativeness = scores(2)
    assert torch.equal(meta.score(purity, informativeness), informativeness.double())


def test_one_pure_query_does_not_switch_purity_off():
    meta = MetaNet()
    answered(meta, 1)
    trained = meta.net
    assert trained is not None
    answered(meta, 2, known=torch.ones(200, dtype=torch.bool))
    purity, informativeness = scores(3)
    found = meta.score(purity, informativeness)
    assert not torch.equal(found.argsort(), informativeness.double().argsort())


def test_only_ood_answers_leave_the_net_as_it_was():
    meta = MetaNet()
    answered(meta, 1, known=torch.zeros(200, dtype=torch.bool))
    assert meta.net is None


@pytest.mark.parametrize("variant", ["default", "paper", "reference"])
def test_scores_stay_monotone_and_finite_over_rounds(variant):
    meta = MetaNet(variant)
    for seed in range(4):
        answered(meta, seed)
    purity, informativeness = scores(7)
    phi = meta.score(purity, informativeness)
    assert bool(phi.isfinite().all())
    better = (purity[:, None] <= purity[None, :]) & (informativeness[:, None] <= informativeness[None, :])
    assert bool((phi[None, :] - phi[:, None])[better].min() >= -1e-5 * (1 + phi.abs().max()))


def test_constant_scores_and_one_item_are_fine():
    for meta in (MetaNet(), MetaNet("paper")):
        for purity, informativeness in ((torch.ones(5), torch.ones(5)), (torch.ones(1), torch.zeros(1))):
            assert bool(meta.score(purity, informativeness).isfinite().all())


def test_ties_are_broken_by_the_unclipped_scores_then_by_row():
    # two items beyond the clip in both scores are one corner to the net; the farther one comes first
    raw = torch.cat(
        [
            torch.randn(500, 2, generator=torch.Generator().manual_seed(0)),
            torch.tensor([[90.0, 90], [99, 99], [99, 99]]),
        ]
    )
    meta = MetaNet(settings_with("default", sharpness=0.0, value_input=False, first_round="sum"))
    rows = meta.rank(raw.double(), 3, any_ood=True, uniform=uniform(503)).rows
    assert rows.tolist() == [501, 502, 500]


def test_a_longer_ranking_begins_with_the_shorter():
    raw = torch.stack(scores(0), dim=1).double()
    for sharpness in (0.0, 2.0):
        meta = MetaNet(settings_with("default", sharpness=sharpness))
        long = meta.rank(raw, 50, any_ood=True, uniform=uniform()).rows
        assert torch.equal(meta.rank(raw, 20, any_ood=True, uniform=uniform()).rows, long[:20])


def test_state_round_trip_ranks_alike():
    meta, other = MetaNet(), MetaNet()
    for seed in range(3):
        answered(meta, seed)
    other.restore(meta.state())
    raw = torch.stack(scores(9), dim=1).double()
    for any_ood in (True, False):
        first, second = (m.rank(raw, 30, any_ood=any_ood, uniform=uniform()) for m in (meta, other))
        assert torch.equal(first.rows, second.rows)


def test_more_than_two_inputs():
    meta = MetaNet(n_scores=4, informativeness=2)
    g = torch.Generator().manual_seed(0)
    columns = torch.randn(N, 4, generator=g)
    assert meta.score(*columns.T).shape == (N,)
    query = torch.arange(100)
    known = columns[query, 0] > -0.5
    meta.fit(*columns[query].T, loss=columns[query, 2].abs(), is_known=known)
    assert meta.net is not None
    assert meta.net.n_inputs == 5


def test_wrong_calls_say_what_is_wrong():
    meta = MetaNet()
    purity, informativeness = scores(0)
    with pytest.raises(InputError, match="score the pool first"):
        meta.fit(purity, informativeness, loss=purity, is_known=purity > 0)
    with pytest.raises(InputError, match="expected 2 scores"):
        meta.score(purity)
    purity[3] = float("nan")
    with pytest.raises(InputError, match="row 3"):
        meta.score(purity, informativeness)
    with pytest.raises(ConfigError, match="Did you mean 'sharpness'"):
        settings_with("default", more={"sharpnes": 1.0})
    with pytest.raises(ConfigError, match="reference"):
        MetaNet("refrence")


def test_draws_follow_the_odds():
    # Gumbel keys: the first item drawn is item i with probability exp(s_i) / sum exp(s)
    odds = torch.tensor([0.0, math.log(2.0), math.log(5.0)], dtype=torch.float64)
    u = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first = torch.stack([drawn(odds, row) for row in u]).argmax(dim=1)
    assert torch.bincount(first).div(20_000).tolist() == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.012)
    assert bool(drawn(odds, torch.tensor([0.0, 1.0, 0.5])).isfinite().all())


def test_onto_scale_keeps_the_order_and_takes_the_values():
    score, scale = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0.5, -7.0, 0.1], dtype=torch.float64)
    assert onto_scale(score, scale).tolist() == [0.5, -7.0, 0.1]
    assert onto_scale(-score, scale).tolist() == [-7.0, 0.5, 0.1]


def test_items_nobody_can_tell_apart_have_the_same_odds():
    score, scale = torch.tensor([2.0, 1.0, 2.0, 2.0]), torch.tensor([4.0, 1.0, 2.0, 9.0])
    assert onto_scale(score, scale).tolist() == [5.0, 1.0, 5.0, 5.0]
    meta = MetaNet("paper", combine="sum")
    raw = torch.zeros(6, 2, dtype=torch.float64)
    raw[0] = 1.0
    meta.settings = settings_with("paper", cost_aware=True)
    rows = meta.rank(raw, 6, any_ood=True, uniform=uniform(6), cost_ratio=2.0).rows
    assert rows.tolist() == [0, 1, 2, 3, 4, 5]  # ties by id, with costs too


def test_without_an_ood_answer_costs_do_not_bring_purity_in():
    purity, informativeness = scores(4)
    raw = torch.stack([purity, informativeness], dim=1).double()
    turned = raw * torch.tensor([-1.0, 1.0])
    meta = MetaNet(settings_with("default", sharpness=0))
    for ratio in (0.2, 5.0):
        first, second = (meta.rank(r, 20, any_ood=False, uniform=uniform(), cost_ratio=ratio) for r in (raw, turned))
        assert first.rows.tolist() == second.rows.tolist() == informativeness.argsort(descending=True)[:20].tolist()


def test_value_is_monotone_in_both():
    odds, informativeness = torch.linspace(-9, 9, 50), torch.linspace(0, 3, 50)
    assert bool((log_value(odds, informativeness).diff() >= 0).all())
    assert bool((log_value(odds, torch.full((50,), 2.0)).diff() >= 0).all())
    assert log_informativeness(torch.full((4,), 7.0)).tolist() == [0.0] * 4


def test_expected_cost_by_hand():
    assert log_cost(torch.tensor([1.0, 0.0, 0.5]), 4.0).exp().tolist() == pytest.approx([1.0, 4.0, 2.5])


def test_cost_moves_the_query_towards_purity():
    raw = torch.stack(scores(3), dim=1).double() * torch.tensor([3.0, 1.0])
    meta = MetaNet(settings_with("default", sharpness=0.0), log_odds=True)
    shares = []
    for ratio in (0.25, 1.0, 8.0):
        rows = meta.rank(raw, 60, any_ood=True, cost_ratio=ratio, uniform=uniform()).rows
        shares.append(float(torch.sigmoid(raw[rows, 0]).mean()))
    assert shares[0] < shares[1] < shares[2]


def test_calibration_recovers_a_logistic_and_leaves_little_data_alone():
    g = torch.Generator().manual_seed(0)
    s = 2 * torch.randn(20_000, generator=g, dtype=torch.float64)
    known = torch.rand(20_000, generator=g, dtype=torch.float64) < torch.sigmoid(0.5 * s - 1.0)
    assert calibrate(s, known) == pytest.approx((0.5, -1.0), abs=0.05)
    a, b = calibrate(s[:2], known[:2])
    assert 0.3 < a < 1.7
    assert abs(b) < 0.8
    a, b = calibrate(torch.linspace(-50, 50, 100), torch.linspace(-50, 50, 100) > 0)  # separable: stays finite
    assert math.isfinite(a)
    assert math.isfinite(b)


@pytest.mark.parametrize("scale", [0.3, 2.0, 8.0, 40.0])
@pytest.mark.parametrize("shift", [-6.0, 0.0, 3.0])
@pytest.mark.parametrize("ridge", [(1.0, 1.0), (30.0, 10.0)])
def test_calibration_is_the_minimum_of_its_loss(scale, shift, ridge):
    """Against scipy, from few answers and confident scores, where whole Newton steps overshoot and never come back."""
    for seed in range(5):
        g = torch.Generator().manual_seed(seed)
        s = shift + scale * torch.randn(90, generator=g, dtype=torch.float64)
        known = torch.rand(90, generator=g, dtype=torch.float64) < torch.sigmoid(0.4 * s / scale + 1.0)
        odds, signs = s.numpy(), 2.0 * known.double().numpy() - 1.0

        def loss(w, odds=odds, signs=signs):
            pull = ridge[0] * (w[0] - 1.0) ** 2 + ridge[1] * w[1] ** 2
            return np.logaddexp(0.0, -signs * (w[0] * odds + w[1])).sum() + pull / 2

        best = minimize(
            loss, [0.1, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000}
        )
        if best.x[0] > 2e-3:  # else the slope is kept positive
            assert calibrate(s, known, ridge) == pytest.approx(tuple(best.x), abs=1e-4)


def test_rank_inputs_do_not_reach_farther_than_their_rank():
    column = torch.tensor([[0.0], [1.0], [1e9]])
    assert normal_ranks(column)[:, 0].tolist() == pytest.approx([-0.967, 0.0, 0.967], abs=1e-3)
    assert normal_ranks(torch.full((5, 1), 3.0)).abs().max() == 0.0  # a constant score says nothing
    assert normal_ranks(torch.tensor([[2.0], [1.0], [2.0], [3.0]]))[:, 0].tolist() == pytest.approx(
        [0.0, -1.150, 0.0, 1.150], abs=1e-3
    )


def test_rules_by_hand():
    z = torch.tensor([[1.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    assert fixed_rule(z, "sum").tolist() == pytest.approx([math.e + math.e**2, 2.0])
    assert fixed_rule(z, "product").tolist() == pytest.approx([math.e**3, 1.0])


def test_the_reference_trains_on_inputs_of_the_query_itself():
    meta = MetaNet("reference")
    raw = torch.tensor([[0.0, 5.0], [2.0, 7.0]], dtype=torch.float64)
    scaled = meta._query_scaled(raw, QuerySet(raw, torch.zeros(2))).z
    assert scaled[:, 0].tolist() == pytest.approx([math.exp(-1.0), math.exp(1.0)])
    assert scaled[:, 1].tolist() == [5.0, 7.0]  # informativeness raw


@pytest.mark.parametrize("log_odds", [True, False])
@pytest.mark.parametrize("transform", ["clip", "exp", "rank"])
def test_items_beside_a_pool_are_seen_as_if_they_stood_in_it(log_odds, transform):
    purity, informativeness = scores(0)
    raw = torch.stack([purity, informativeness], dim=1).double()
    whole = meta_input(raw, 1, log_odds=log_odds, value_input=True, transform=transform)
    part = meta_input(raw[:10], 1, log_odds=log_odds, value_input=True, transform=transform, frame=whole.frame)
    assert torch.equal(part.z, whole.z[:10])
    assert torch.equal(part.value, whole.value[:10])


@pytest.mark.parametrize("log_odds", [True, False])
def test_the_net_learns_from_the_inputs_that_ranked_the_query(log_odds):
    meta = MetaNet(log_odds=log_odds)
    purity, informativeness = scores(1)
    query = meta.score(purity, informativeness).argsort(descending=True)[:60]
    ranked = meta.inputs(torch.stack([purity, informativeness], dim=1).double()).z[query]
    meta.fit(purity[query], informativeness[query], loss=torch.ones(60), is_known=torch.arange(60) % 3 > 0)
    assert torch.equal(meta._history[0][1].z, ranked)


def test_a_query_that_teaches_nothing_leaves_the_net_as_it_was():
    meta = MetaNet()
    answered(meta, 1)
    trained = meta.net
    answered(meta, 2, known=torch.zeros(200, dtype=torch.bool))
    assert meta.net is trained


def test_junk_of_the_first_sample_is_an_answer_like_any_other():
    meta, g = MetaNet(), torch.Generator().manual_seed(0)
    sets = [(torch.zeros(60, 2), QuerySet(torch.randn(60, 3, generator=g), torch.rand(60, generator=g) + 0.1))]
    nothing = torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.bool)
    meta.learn(sets, *nothing, g)
    assert meta.net is None
    meta.learn(sets, *nothing, g, any_ood=True)
    assert meta.net is not None


@pytest.mark.parametrize("wrong", [{"replay": 0}, {"more": {"sure_after": 0}}, {"more": {"lean": 0}}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ConfigError):
        settings_with("default", **wrong)
    with pytest.raises(ConfigError, match="drop value_input"):
        settings_with("reference", value_input=True)


# a preference that is learned must be able to leave the rule it starts from: two worlds in which that rule is wrong
CHANCE = {"purity is useless": 0.0, "purity is all": 4.0}


def _worth(world: str, purity: torch.Tensor, informativeness: torch.Tensor, g: torch.Generator) -> torch.Tensor:
    known = torch.sigmoid(CHANCE[world] * purity) > torch.rand(len(purity), generator=g)
    worth = torch.ones_like(informativeness) if world == "purity is all" else informativeness
    return torch.where(known, worth + 0.2 * torch.rand(len(purity), generator=g) + 0.01, 0.0)


def _pairs_right(meta: MetaNet, world: str) -> float:
    purity, informativeness = scores(77, 4000)
    worth = _worth(world, purity, informativeness, torch.Generator().manual_seed(78))
    found = meta.score(purity, informativeness)
    (above, below), (better, worse) = found.chunk(2), worth.chunk(2)
    return float(((above > below) == (better > worse))[better != worse].double().mean())


@pytest.mark.parametrize("world", CHANCE)
def test_with_room_the_net_leaves_the_rule_it_starts_from_where_that_is_wrong(world):
    meta = MetaNet(
        settings_with("default", more={"lean": 0.1, "lr": 0.1, "n_epochs": 240, "shrink": 0.0}), log_odds=True
    )
    rule = _pairs_right(meta, world)
    for seed in range(4):
        purity, informativeness = scores(seed, 2000)
        query = meta.score(purity, informativeness).argsort(descending=True)[:200]
        worth = _worth(world, purity, informativeness, torch.Generator().manual_seed(seed + 500))[query]
        meta.fit(purity[query], informativeness[query], loss=worth, is_known=worth > 0)
    assert _pairs_right(meta, world) > rule + 0.03
