"""`simulate`: a campaign against known truth, from arrays and names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mqnet
from mqnet.errors import ConfigError, InputError
from mqnet.experiment.simulate import run_campaign
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.opening import as_pool
from mqnet.oracles.simulated import NoisyOracle, Truth

CENTRES = {"cat": (4.0, 0.0), "dog": (0.0, 4.0), "junk": (-4.0, -4.0)}


def _items(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(seed)
    names = [list(CENTRES)[i] for i in random.integers(3, size=n)]
    return np.asarray([CENTRES[name] for name in names]) + random.normal(size=(n, 2)), names


def _run(**changes: object) -> list[mqnet.experiment.simulate.RoundResult]:
    pool, names = _items(90, 0)
    options = {"classes": ["cat", "dog"], "budget": 6, "rounds": 2, "strategy": "random", "model": {"name": "head"}}
    return mqnet.simulate(pool.astype(np.float32), names, **{**options, **changes})


def test_rounds_are_measured_on_the_known_test_items() -> None:
    vectors, names = _items(60, 1)
    first, second = _run(test=(vectors.astype(np.float32), names))
    assert (first.round, second.round) == (1, 2)
    assert (first.spent, second.spent) == (6.0, 12.0)
    assert first.n_known + first.n_ood == 6
    # clusters four standard deviations from the line between them: junk among the test items is left out
    assert second.accuracy > 0.95
    n_known = sum(name != "junk" for name in _items(90, 0)[1])
    assert second.recall_known == pytest.approx((second.n_known + 6 * second.query_known_share) / n_known)
    assert math.isnan(second.purity_auroc)


@pytest.mark.parametrize("test", [None, (np.zeros((2, 2), dtype=np.float32), ["junk", "junk"])])
def test_without_known_test_items_there_is_no_accuracy(test: object) -> None:
    assert all(math.isnan(result.accuracy) for result in _run(test=test))


def test_costs_differ_and_none_is_junk() -> None:
    pool, names = _items(90, 0)
    truth = [None if name == "junk" else name for name in names]
    options = {"classes": ["cat", "dog"], "budget": 6, "rounds": 2, "cost_ood": 2.0, "strategy": "random"}
    plain = mqnet.simulate(pool.astype(np.float32), truth, **options)
    assert [(r.n_known, r.n_ood) for r in plain] == [(r.n_known, r.n_ood) for r in _run(cost_ood=2.0)]
    assert all(r.spent == r.n_known + 2.0 * r.n_ood <= 6 * r.round for r in plain)


def test_shares_count_what_items_are_not_what_a_mistaken_annotator_said() -> None:
    vectors, names = _items(90, 0)
    classes = ("cat", "dog")
    pool = as_pool(vectors.astype(np.float32))
    labels = np.array([classes.index(name) if name in classes else -1 for name in names])
    truth = Truth(pool.ids, labels, classes)
    learner = ActiveLearner(pool, classes, budget=30, rounds=2, strategy="random", truth=truth)
    first, second = run_campaign(learner, NoisyOracle(truth, misses_ood=1.0), truth)
    rounds = [truth.of([line.item for line in learner.ledger if line.round == r]) >= 0 for r in range(3)]
    assert (second.n_known, second.n_ood) == (60, 0)  # every answer names a class
    assert [first.query_known_share, second.query_known_share] == [rounds[1].mean(), rounds[2].mean()]
    assert first.recall_known == (rounds[0].sum() + rounds[1].sum()) / (labels >= 0).sum() < 1
    assert second.recall_known == 1.0  # the whole pool is bought


def test_an_oracle_strategy_may_be_simulated() -> None:
    assert all(result.query_known_share == 1.0 for result in _run(strategy="oracle-purity"))


def test_wrong_input_is_named() -> None:
    pool, names = _items(90, 0)
    with pytest.raises(InputError, match="90 items but 89 true labels"):
        mqnet.simulate(pool, names[:-1], classes=["cat", "dog"], budget=6, rounds=1, strategy="random")
    with pytest.raises(ConfigError, match=r"budget is 0\.5"):
        _run(budget=0.5)


def test_images_are_simulated_with_a_coder() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    images = (labels[:, None, None, None] * 80 + rng.integers(0, 40, (60, 3, 8, 8))).astype(np.uint8)
    names = ["dark", "middle", None]
    rounds = mqnet.simulate(
        images[:45], [names[k] for k in labels[:45]], classes=("dark", "middle"), budget=8, rounds=1,
        test=(images[45:], [names[k] or "junk" for k in labels[45:]]), model={"name": "resnet8", "n_steps": 4},
        strategy={"name": "sum", "purity": "csi", "informativeness": "margin"}, coder={"epochs": 1},
    )  # fmt: skip
    assert len(rounds) == 1
    assert 0.0 <= rounds[0].accuracy <= 1.0
    assert 0.0 <= rounds[0].purity_auroc <= 1.0
