"""Ask and tell by example: the first sample, corrections, skips, budgets, models without labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from mqnet.data.pools import ArrayPool
from mqnet.errors import AnswerError, ConfigError, PluginError, PoolError
from mqnet.loop.advance import advance
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.rounds import check_selection, initial_ranking
from mqnet.oracles.simulated import SimulatedOracle, Truth
from mqnet.registry import STRATEGY
from mqnet.store.overview import Overview
from mqnet.strategies.base import Ranking
from mqnet.testing import make_scene
from mqnet.types import OOD, SKIP, Known, Selection

RNG = np.random.Generator(np.random.PCG64(5))
VECTORS = RNG.normal(size=(50, 4)).astype(np.float32)
IDS = [f"{i:02d}.jpg" for i in RNG.permutation(50)]
CLASSES = ("cat", "dog")
QUICK = {"name": "head", "hidden": 4, "n_steps": 2, "batch_size": 8}


def start(pool=None, **changes) -> ActiveLearner:
    options = {"budget": 5, "strategy": "confidence", "model": QUICK, **changes}
    return ActiveLearner(ArrayPool(VECTORS, IDS) if pool is None else pool, CLASSES, **options)


def run(learner: ActiveLearner, answer=OOD) -> list[tuple[str, ...]]:
    asked = []
    while (query := learner.ask()) is not None:
        asked.append(query.items)
        learner.tell(dict.fromkeys(query.items, answer))
    return asked


def test_the_first_sample_is_random_and_the_same_for_every_strategy() -> None:
    first = {name: start(strategy=name).ask() for name in ("random", "confidence", "sum")}
    assert first["random"] == first["confidence"] == first["sum"]
    assert (first["sum"].round, len(first["sum"].items)) == (0, 5)
    assert start(seed=1).ask() != first["sum"]
    # a pool in another order is the same pool to the campaign
    order = np.random.Generator(np.random.PCG64(0)).permutation(50)
    shuffled = ArrayPool(VECTORS[order], [IDS[i] for i in order])
    assert start(shuffled).ask() == first["sum"]
    assert run(start(shuffled, rounds=2)) == run(start(rounds=2))


def test_every_item_comes_up_first_alike() -> None:
    pool, config = ArrayPool(VECTORS, IDS), start().config
    first = [initial_ranking(pool, replace(config, seed=seed), 1)[0][0] for seed in range(300)]
    counts = np.unique(first, return_counts=True)[1]
    assert len(counts) > 45
    assert counts.max() < 20  # expected 6


def test_rounds_are_numbered_and_end() -> None:
    learner = start(rounds=3)
    assert [len(items) for items in run(learner)] == [5, 5, 5, 5]
    assert [(r.round, r.closed, r.budget) for r in learner.store.rounds()] == [(i, True, 5.0) for i in range(4)]
    assert learner.ask() is None
    with pytest.raises(AnswerError, match="was never asked, and no round is open"):
        learner.tell({next(i for i in IDS if i not in {line.item for line in learner.ledger}): OOD})


@pytest.mark.parametrize("strategy", ["ll", {"name": "mqnet", "variant": "paper"}])
def test_a_head_without_a_loss_branch_predicts_no_loss(strategy: object) -> None:
    with pytest.raises(ConfigError, match=r"needs predicted_loss, which the model 'head' does not give"):
        start(strategy=strategy, model={**QUICK, "loss_prediction": "off"})
    assert start(strategy="confidence", model={**QUICK, "loss_prediction": "off"}).ask() is not None
    assert start(strategy=strategy).ask() is not None


def test_a_pool_runs_out() -> None:
    learner = start(budget=20)
    asked = run(learner)
    assert sorted(item for items in asked for item in items) == sorted(IDS)
    assert [len(items) for items in asked] == [20, 20, 10]


def test_a_total_budget_ends_the_campaign() -> None:
    learner = start(budget=6, total_budget=16, cost_ood=2)
    assert [record.budget for record in learner.store.rounds()] == []
    run(learner)
    assert learner.spent == 16.0
    assert [record.budget for record in learner.store.rounds()] == [6.0, 6.0, 4.0]


def test_skipped_items_are_replaced_and_come_back_only_when_queued() -> None:
    learner = start(rounds=1)
    first = learner.ask().items
    learner.tell(dict.fromkeys(first, SKIP))
    assert not set(learner.ask().items) & set(first)
    learner.tell(dict.fromkeys(learner.ask().items, "cat"))
    assert learner.ask().round == 1
    assert learner.spent == 5.0
    learner.requeue(first[:2])
    assert {line.item for line in learner.ledger} & set(first[:2]) == set()
    with pytest.raises(AnswerError, match=f"item '{first[0]}' was not skipped"):
        learner.requeue([first[0]])


def test_a_skip_that_is_queued_again_stays_charged() -> None:
    learner = start(budget=5, total_budget=9, cost_skip=1.0)
    asked = []
    while (query := learner.ask()) is not None and len(asked) < 20:
        asked.append(query.items[0])
        learner.tell({query.items[0]: SKIP})
        learner.requeue(query.items[:1])
    assert len(asked) == 9  # five and four, then nothing is left
    assert learner.spent == 9.0
    assert learner.ledger == []
    assert learner.store.spent_by_round() == {0: 5.0, 1: 4.0}
    assert [count.spent for count in Overview(learner.store).dashboard().rounds] == [5.0, 4.0]


def test_a_correction_leaves_an_open_round_less_of_the_total() -> None:
    learner = start(budget=10, total_budget=20, cost_ood=5, strategy="random")
    first = []
    while (query := learner.ask()).round == 0:
        first.append(query.items[0])
        learner.tell({query.items[0]: "cat"})
    assert (learner.spent, learner.store.rounds()[-1].budget) == (6.0, 10.0)
    learner.tell(dict.fromkeys(first[:1], OOD))
    assert len(learner.ask().items) == 2  # 10 spent: ten of the total are left, and ten of the round
    learner.tell(dict.fromkeys(first[1:2], OOD))
    assert len(learner.ask().items) == 1  # 14 spent
    learner.tell(dict.fromkeys(first[2:3], OOD))
    assert learner.ask() is None  # 18 spent: the total does not cover another label
    assert learner.spent == 18.0
    assert learner.store.rounds()[-1].closed


def test_a_round_of_skips_goes_through_the_whole_pool() -> None:
    learner = start(rounds=2)
    asked = [item for items in run(learner, SKIP) for item in items]
    assert sorted(asked) == sorted(IDS)
    assert learner.spent == 0
    # queued again, all of them can be asked again
    learner.requeue(asked)
    assert len(run(learner, "cat")) == 2


def test_corrections_change_label_and_cost_not_the_round() -> None:
    learner = start(budget=8, cost_known=1, cost_ood=4)
    a, b = learner.ask().items
    learner.tell({a: "cat"})
    assert learner.ask().items[0] == b
    learner.tell({a: OOD})
    assert learner.ask().items == (b,)  # four left
    learner.tell({a: Known("dog")})
    learner.tell({b: OOD})
    while learner.ask().round == 0:
        learner.tell({learner.ask().items[0]: OOD})
    before = learner.spent
    learner.tell({a: OOD})
    assert (learner.spent, learner.ask().round) == (before + 3, 1)
    assert [kind for item, kind, *_ in learner.store.history() if item == a] == ["known", "ood", "known", "ood"]


def test_all_answers_are_taken_or_none() -> None:
    learner = start()
    good, bad = learner.ask().items[:2]
    for answers, words in (
        ({good: "cat", bad: "cow"}, f"item '{bad}': 'cow' is not a known class"),
        ({good: "cat", "99.jpg": "cat"}, "item '99.jpg' is not open in round 0"),
        ({good: "cat", bad: 1}, f"item '{bad}': 1 is not an answer"),
    ):
        with pytest.raises(AnswerError, match=words):
            learner.tell(answers)
        assert learner.ledger == []


@pytest.mark.parametrize("answer", [OOD, SKIP, "cat"])
@pytest.mark.parametrize("model", ["head", "sklearn"])
@pytest.mark.parametrize("strategy", ["confidence", "product"])
def test_one_sided_answers_do_not_stop_a_campaign(answer, model: str, strategy: str) -> None:
    learner = start(rounds=2, strategy=strategy, model=QUICK if model == "head" else model)
    run(learner, answer)
    assert len(learner.predict(VECTORS[:3])) == 3


def test_the_view_of_a_round_can_be_made_again() -> None:
    learner = start(strategy="product", rounds=2)
    run(learner, "cat")
    _, view = learner.view(1)
    assert list(view.ids) == sorted(set(IDS) - {line.item for line in learner.ledger if line.round == 0})
    n = len(learner.store.ranking(1))
    again = learner.strategy_of(1).select(view, n, learner._key(1, "select"))
    assert list(view.ids.take(again.rows.numpy())) == learner.store.ranking(1)
    with pytest.raises(ConfigError, match="round 0 has no view"):
        learner.view(0)


def test_advance_says_where_it_stands() -> None:
    pool = ArrayPool(VECTORS, IDS)
    oracle = SimulatedOracle(Truth(pool.ids, np.zeros(50, dtype=np.int64), CLASSES))
    learner = start(pool, rounds=1)

    class Nobody:
        def collect(self, query):
            return {}

    assert advance(learner, Nobody()).state == "asking"
    assert (advance(learner, oracle).state, learner.spent) == ("advanced", 5.0)
    assert advance(learner, oracle).round == 1
    assert (advance(learner, oracle).state, learner.spent) == ("done", 10.0)


def test_truth_reaches_reference_lines_only() -> None:
    pool = ArrayPool(VECTORS, IDS)
    labels = np.where(np.arange(50) % 2, 0, -1)
    truth = Truth(pool.ids, labels, CLASSES)
    seen = {}
    for strategy in ("oracle-purity", "confidence"):
        with start(pool, truth=truth, strategy=strategy, rounds=1) as learner:
            learner._monitor = lambda view, selection, model, s=strategy: seen.update({s: view.truth}) or {}
            while advance(learner, SimulatedOracle(truth)).state != "done":
                pass
            known = {line.item for line in learner.ledger if line.round == 1 and isinstance(line.answer, Known)}
    assert seen["confidence"] is None
    assert len(seen["oracle-purity"]) == 45
    assert len(known) < 5


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"budget": 0.5}, ConfigError, "below the dearest label"),
        ({"strategy": "nothing"}, PluginError, "no strategy is called"),
        ({"strategy": {"options": 1}}, ConfigError, "needs a name"),
        ({"strategy": {"name": "sum", "purity": "knm"}}, PluginError, "no purity is called 'knm'"),
        ({"model": {"name": "sklearn", "classifier": "os.system"}}, ConfigError, "only classes of scikit-learn"),
        ({"model": {"name": "sklearn", "classifier": "sklearn.svm.LinearSVC"}}, ConfigError, "no predict_proba"),
        ({"pool": np.zeros((0, 3), np.float32)}, PoolError, "the pool is empty"),
        ({"pool": "pool.csv"}, PoolError, r"'pool\.csv' is not a pool of vectors.*Choices: \.npy, \.parquet"),
        ({"pool": "nothing.npy"}, PoolError, "does not exist"),
    ],
)
def test_what_cannot_work_is_refused_at_once(change, error, words, tmp_path) -> None:
    with pytest.raises(error, match=words):
        start(folder=tmp_path / "campaign", **change)
    assert not (tmp_path / "campaign" / "campaign.db").exists()


def test_a_single_text_is_no_list_of_classes() -> None:
    with pytest.raises(ConfigError, match="give a list"):
        ActiveLearner(VECTORS, "cat", budget=3)


def test_a_strategy_that_needs_what_the_model_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hungry(Ranking):
        needs = frozenset({"features"})

    entry = replace(STRATEGY.get("random"), name="hungry", target=Hungry)
    monkeypatch.setitem(STRATEGY._entries, "hungry", entry)
    with pytest.raises(ConfigError, match="strategy 'hungry' needs features, which the model 'sklearn' does not give"):
        start(strategy="hungry", model="sklearn")


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(torch.tensor([0, 0, 1]), torch.zeros(3)), "twice"),
        (Selection(torch.tensor([0, 1, 72]), torch.zeros(3)), "outside the view of 72"),
        (Selection(torch.tensor([0, 1, -1]), torch.zeros(3)), "outside"),
        (Selection(torch.tensor([0, 1]), torch.zeros(2)), r"ranked \(2,\) rows; expected \(3,\)"),
        (Selection(torch.tensor([0, 1, 2]), torch.tensor([0.0, torch.nan, 1.0])), "gave item 'item .*' a score"),
        (Selection(torch.tensor([0, 1, 2]), torch.zeros(3), {"x": torch.zeros(4)}), "snapshot 'x' has 4 rows for 3"),
    ],
)
def test_a_broken_ranking_is_refused(selection: Selection, words: str) -> None:
    with pytest.raises(PluginError, match=f"strategy 'mine'.*{words}"):
        check_selection(selection, make_scene().view, 3, "mine")
