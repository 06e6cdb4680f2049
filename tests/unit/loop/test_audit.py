"""The audit's places and draws: a fixed share, uniform, the same whatever the strategy wants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqnet.data.pools import ArrayPool
from mqnet.errors import ConfigError
from mqnet.ids import ItemIds
from mqnet.loop.audit import draw, interleaved, slots
from mqnet.loop.explain import explain, why
from mqnet.loop.learner import ActiveLearner
from mqnet.rng import Key
from mqnet.store.codec import from_json, to_json
from mqnet.types import OOD, SKIP, Known

RNG = np.random.Generator(np.random.PCG64(11))
LABELS = RNG.integers(-1, 2, size=200)
VECTORS = (RNG.normal(size=(200, 5)) + 2 * np.eye(5)[LABELS]).astype(np.float32)
POOL = ArrayPool(VECTORS)
CLASSES = ("cat", "dog")
QUICK = {"name": "head", "hidden": 4, "n_steps": 2, "batch_size": 8}


def start(**changes) -> ActiveLearner:
    options = {"budget": 10, "strategy": "mqnet", "model": QUICK, "audit_share": 0.2, **changes}
    return ActiveLearner(POOL, CLASSES, **options)


def truth(item: str):
    label = int(LABELS[int(item)])
    return Known(CLASSES[label]) if label >= 0 else OOD


def run(learner: ActiveLearner) -> ActiveLearner:
    while (query := learner.ask()) is not None:
        learner.tell({item: truth(item) for item in query.items})
    return learner


@pytest.mark.parametrize(
    ("share", "n_before", "n", "places"),
    [
        (0.05, 0, 50, [19, 39]),  # the 20th and the 40th label
        (0.05, 50, 50, [9, 29, 49]),  # the half that was left comes first
        (0.05, 0, 10, []),
        (0.05, 10, 10, [9]),  # every second round of ten
        (0.29, 0, 7, [3, 6]),
        (0.5, 1, 4, [0, 2]),
        (0.0, 3, 40, []),
    ],
)
def test_places_by_hand(share: float, n_before: int, n: int, places: list[int]) -> None:
    assert slots(share, n_before, n).tolist() == places


@given(
    share=st.integers(0, 99).map(lambda percent: percent / 100),
    rounds=st.lists(st.integers(0, 60), min_size=1, max_size=12),
    more=st.integers(0, 30),
)
def test_the_share_holds_over_any_rounds_and_places_extend(share: float, rounds: list[int], more: int) -> None:
    drawn, n_before = 0, 0
    for n in rounds:
        places = slots(share, n_before, n)
        assert slots(share, n_before, n + more)[: len(places)].tolist() == places.tolist()
        drawn, n_before = drawn + len(places), n_before + n
        assert drawn == round(share * 100) * n_before // 100


@given(
    order=st.permutations(list("abcdefghij")),
    chance=st.permutations(list("abcdefghij")),
    n_wanted=st.integers(0, 10),
    places=st.sets(st.integers(0, 9), max_size=5).map(sorted),
    cut=st.integers(0, 10),
)
def test_ranking_by_strategy_and_chance(order, chance, n_wanted, places, cut) -> None:
    wanted = [(item, float(-i)) for i, item in enumerate(order[:n_wanted])]
    drawn = [(item, i / 10) for i, item in enumerate(chance[: len(places)])]
    found = interleaved(wanted, drawn, places)
    items = [item for item, _ in found.ranking]
    assert sorted(items) == sorted({item for item, _ in wanted} | {item for item, _ in drawn})
    assert found.drawn == {item for item, _ in drawn}, "the draw decides who is drawn, not the ranking"
    # what the strategy ranked keeps its order, but for what was drawn
    left = [item for item in items if item not in found.drawn]
    assert left == [item for item, _ in wanted if item not in found.drawn]
    assert [order[row] if row >= 0 else None for row in found.rows] == [
        i if i in order[:n_wanted] else None for i in items
    ]
    if n_wanted == 10:  # no draw stands later than its place
        assert all(items.index(item) <= place for (item, _), place in zip(drawn, places, strict=True))
        # a shorter budget has fewer places, and begins alike
        fewer = [place for place in places if place < cut]
        shorter = interleaved(wanted, drawn[: len(fewer)], fewer)
        assert [item for item, _ in shorter.ranking][:cut] == items[:cut]


def test_every_item_is_drawn_alike_whatever_was_chosen_before() -> None:
    ids = ItemIds.of([f"{i}.png" for i in range(60)]).without([f"{i}.png" for i in range(0, 60, 3)])
    counts = dict.fromkeys(ids, 0)
    for seed in range(1000):
        found = [item for item, _ in draw(ids, 4, Key(seed).child("round", 1, "audit"))]
        assert found == [item for item, _ in draw(ids, 9, Key(seed).child("round", 1, "audit"))][:4]
        for item in found:
            counts[item] += 1
    chi_square = sum((count - 100) ** 2 / 100 for count in counts.values())  # 40 items, 4,000 draws
    assert chi_square * 40 / 36 < 73  # without replacement the counts vary less; 39 degrees of freedom: p = .001


def test_the_draws_do_not_depend_on_the_strategy_nor_on_the_answers_of_their_round() -> None:
    drawn = [start(strategy=name, rounds=1) for name in ("random", "confidence", "mqnet")]
    found = [run(learner).store.drawn() for learner in drawn]
    assert found[0] == found[1] | {1: found[0][1]}
    assert [set(one[1]) for one in found] == [set(found[0][1])] * 3
    assert len(found[0][0]) == 10
    assert len(found[0][1]) == 2


def test_unequal_costs_leave_the_number_of_draws_alone() -> None:
    """A round of 20 buys five labels at four each, whatever they are, and up to twenty: the audit lies in the five."""
    learner = run(start(budget=20, cost_ood=4, rounds=3, audit_share=0.4))
    assert [len(items) for items in learner.store.drawn().values()] == [5, 2, 2, 2]
    for round_, items in learner.store.drawn().items():
        assert set(items) <= set(learner.store.ranking(round_)[:5])
        lines = {line.item: line for line in learner.ledger if line.round == round_}
        assert all(lines[item].audit for item in items)
        if round_:
            assert sum(lines[item].cost for item in items) <= 0.4 * 20


def test_a_round_of_skips_is_extended_by_the_strategy_alone() -> None:
    learner = start(rounds=1)
    run_zero = learner.ask()
    learner.tell({item: truth(item) for item in run_zero.items})
    drawn = None
    for _ in range(4):
        query = learner.ask()
        drawn = drawn or set(learner.store.drawn()[1])
        learner.tell(dict.fromkeys(query.items, SKIP))
        assert set(learner.store.drawn()[1]) == drawn
    assert len(drawn) == 2
    assert {line.item for line in learner.ledger if line.audit and line.round == 1} == drawn
    learner.requeue(sorted(drawn)[:1])
    assert sorted(drawn)[0] in learner.ask().items
    learner.tell({sorted(drawn)[0]: truth(sorted(drawn)[0])})
    assert {line.item for line in learner.ledger if line.audit and line.round == 1} == drawn


def test_mqnet_learns_from_what_it_ranked_and_never_from_a_draw() -> None:
    learner = start(rounds=2, audit_share=0.3)
    seen = []
    query = learner.ask()
    learner.tell({item: truth(item) for item in query.items})
    learner.ask()
    strategy = type(learner._strategy)
    learn = strategy.learn
    try:
        strategy.learn = lambda self, feedback, key: (seen.extend(feedback), learn(self, feedback, key))
        run(learner)
    finally:
        strategy.learn = learn
    one = next(f for f in seen if f.round == 1)
    drawn = set(learner.store.drawn()[1])
    assert len(one.ids) == 7
    assert not set(one.ids) & drawn
    _, view = learner.view(1)
    raw = learner.strategy_of(1).raw(view)
    row = {item: i for i, item in enumerate(view.ids)}
    for place, item in enumerate(one.ids):
        assert one.snapshot["raw"][place].tolist() == raw[row[item]].tolist()


def test_explaining_leaves_the_draws_out_of_the_query_and_says_who_was_drawn() -> None:
    learner = run(start(rounds=1, audit_share=0.3))
    found, drawn = explain(learner, 1), learner.store.drawn()[1]
    assert len(found.items) == 7
    assert not set(found.items) & set(drawn)
    assert "3 more were drawn at random" in found.sentence()
    assert "was drawn at random by the audit in round 1" in why(learner, 1, drawn[0]).text
    assert "was asked" in why(learner, 1, found.items[0]).text


def test_configurations_from_before_the_audit_are_read() -> None:
    config = start().config
    text = to_json(config)
    assert from_json(text) == config
    old = replace(config, audit_share=0.0)
    for name in ("audit_share", "initial", "class_vectors", "ranking_costs"):
        import json

        raw = json.loads(to_json(old))
        del raw[name]
        assert from_json(json.dumps(raw)) == old


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"audit_share": 1.0}, "audit_share is 1.0"),
        ({"audit_share": -0.1}, "audit_share is -0.1"),
        ({"initial": "best"}, "initial is 'best'; it is one of random, diverse, names"),
        ({"initial": "names"}, "class_vectors"),
        ({"class_vectors": np.zeros((2, 5))}, "belong together"),
        ({"initial": "names", "class_vectors": np.zeros(5)}, "expected a row of finite numbers"),
        ({"budget_unit": "hours"}, "budget_unit is 'hours'"),
        ({"ranking_costs": "guessed"}, "ranking_costs is 'guessed'"),
    ],
)
def test_what_cannot_work_is_refused(change, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        start(**change)
