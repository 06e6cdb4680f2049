"""Explaining a round: the numbers are those that ranked it."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from mqnet import OOD, SKIP, ActiveLearner
from mqnet.errors import ConfigError, InputError
from mqnet.loop.explain import explain, why
from mqnet.meta.landscape import mean_slope, phi_at, tangent_slope
from mqnet.meta.net import MetaNet
from mqnet.strategies.mqnet import MqNet


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    vectors, digits = load_digits(return_X_y=True)
    found = ActiveLearner(
        vectors[:300].astype(np.float32), ["0", "1", "2", "3"], budget=20, rounds=3, seed=3,
        folder=tmp_path_factory.mktemp("campaign"),
    )  # fmt: skip
    while query := found.ask():
        found.tell({item: str(digits[int(item)]) if digits[int(item)] < 4 else OOD for item in query.items})
    yield found
    found.close()


def test_the_explained_scores_are_those_that_ranked(learner):
    for round_ in (1, 2, 3):
        found = explain(learner, round_)
        strategy, (_, view) = learner.strategy_of(round_), learner.view(round_)
        assert isinstance(strategy, MqNet)
        again = strategy.select(view, 20, learner._key(round_, "select"))
        assert list(view.ids.take(again.rows.numpy())) == learner.store.ranking(round_)[:20]
        assert set(found.items) == set(learner.store.ranking(round_)[:20])
        assert found.trained == (round_ > 1)
        assert len(found.pool) == len(view) == 300 - 20 * round_
        assert sum(answer is not None for answer in found.answers) == 20
        assert f"Round {round_}" in found.sentence()


def test_what_was_corrected_or_queued_again_since_changes_no_earlier_ranking():
    vectors, digits = load_digits(return_X_y=True)
    learner = ActiveLearner(vectors[:200].astype(np.float32), ["0", "1", "2", "3"], budget=20, rounds=2, seed=1)
    skipped = learner.ask().items[:2]
    learner.tell(dict.fromkeys(skipped, SKIP))
    while query := learner.ask():
        learner.tell({item: str(digits[int(item)]) if digits[int(item)] < 4 else OOD for item in query.items})
    before, one = explain(learner, 1), next(item for item in learner.store.ranking(1) if item not in skipped)
    learner.requeue(skipped)
    learner.tell({line.item: OOD if line.answer != OOD else "0" for line in learner.ledger if line.round == 0})
    after = explain(learner, 1)
    assert (after.slope, after.mean_slope, after.any_ood) == (before.slope, before.mean_slope, before.any_ood)
    assert list(after.ids) == list(before.ids)
    assert torch.equal(after.phi, before.phi)
    assert after.sentence() == before.sentence()
    assert why(learner, 1, one).asked
    with pytest.raises(InputError, match="was asked in round 0"):
        why(learner, 1, skipped[0])


def test_the_landscape_rises_in_both_directions_and_passes_through_the_items(learner):
    found, strategy, (_, view) = explain(learner, 3), learner.strategy_of(3), learner.view(3)
    assert bool((found.landscape.phi.diff(dim=0) >= -1e-9).all())
    assert bool((found.landscape.phi.diff(dim=1) >= -1e-9).all())
    inputs = strategy.meta.inputs(strategy.raw(view))
    inside = (inputs.rule_z.abs() < 3.9).all(dim=1)
    at_items = phi_at(strategy.meta, inputs, inputs.rule_z[:, 0].double(), inputs.rule_z[:, 1].double())
    assert torch.allclose(at_items[inside], found.phi[inside], atol=1e-3)


def test_the_slope_is_that_of_the_line_of_equal_score(learner):
    strategy, (_, view) = learner.strategy_of(3), learner.view(3)
    inputs = strategy.meta.inputs(strategy.raw(view))
    row = int((inputs.rule_z.abs() < 1).all(dim=1).nonzero()[0])
    slope = tangent_slope(strategy.meta, inputs, row)
    p, i = inputs.rule_z[row].double()
    t = 0.002 / max(1.0, abs(slope))  # a short way along the tangent, however steep it is
    p_steps, i_steps = torch.tensor([0.0, slope * t, 0.0]), torch.tensor([0.0, t, t])
    here, along, across = phi_at(strategy.meta, inputs, p + p_steps, i + i_steps).tolist()
    assert slope < 0
    assert abs(along - here) < 0.1 * abs(across - here)


def test_a_querys_slope_is_that_of_its_items(learner):
    strategy, (_, view) = learner.strategy_of(3), learner.view(3)
    inputs = strategy.meta.inputs(strategy.raw(view))
    inside = (inputs.rule_z.abs() < 1).all(dim=1).nonzero().squeeze(1)
    slopes = [tangent_slope(strategy.meta, inputs, int(row)) for row in inside]
    assert min(slopes) <= mean_slope(strategy.meta, inputs, inside) <= max(slopes)
    product = MetaNet(log_odds=True, combine="product")  # exp(z_P + z_I): both count alike everywhere
    assert mean_slope(product, product.inputs(inputs.raw), inside) == pytest.approx(-1.0, abs=1e-6)


def test_one_item(learner):
    asked = learner.store.ranking(2)[0]
    found = why(learner, 2, asked)
    assert found.asked
    assert 1 <= found.rank <= found.n_items == 260
    other = next(item for item in learner.view(2)[1].ids if item not in learner.store.ranking(2)[:20])
    assert "was not asked" in why(learner, 2, other).text
    with pytest.raises(InputError, match="was asked in round 1"):
        why(learner, 2, learner.store.ranking(1)[0])
    with pytest.raises(InputError, match="not in the campaign's pool"):
        why(learner, 2, "nobody")
    with pytest.raises(ConfigError, match="rounds 1 to 3"):
        explain(learner, 9)


def test_other_strategies_are_refused_by_name():
    vectors, _ = load_digits(return_X_y=True)
    other = ActiveLearner(vectors[:50], ["0", "1"], budget=5, rounds=1, strategy="random")
    while query := other.ask():
        other.tell(dict.fromkeys(query.items, "0"))
    with pytest.raises(ConfigError, match="strategy is 'random'"):
        explain(other, 1)
