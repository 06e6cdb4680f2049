"""The purchase rule by hand (METHOD 1), and that no order of answers changes what is bought."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqnet.store.ledger import affords_another, n_known, n_ood, offered, spent
from mqnet.types import OOD, SKIP, Costs, Known, LedgerLine

RANKING = tuple("abcdefghijklmnopqrst")


@pytest.mark.parametrize(
    ("costs", "budget", "answered", "open_items"),
    [
        # equal costs: the first ten
        (Costs(), 10.0, {}, "abcdefghij"),
        (Costs(), 10.0, {"a": 1.0, "c": 1.0}, "bdefghij"),
        # c_IN = 1, c_OOD = 4, b = 10: two at first, since each may cost 4
        (Costs(1.0, 4.0), 10.0, {}, "ab"),
        (Costs(1.0, 4.0), 10.0, {"a": 1.0}, "bc"),  # 9 left
        (Costs(1.0, 4.0), 10.0, {"b": 1.0}, "ac"),  # the same, in another order
        (Costs(1.0, 4.0), 10.0, {"a": 1.0, "b": 1.0}, "cd"),  # 8 left
        (Costs(1.0, 4.0), 10.0, {"a": 1.0, "b": 1.0, "c": 1.0}, "d"),  # 7 left
        (Costs(1.0, 4.0), 10.0, dict.fromkeys("abcdef", 1.0), "g"),  # 4 left: one more, whatever it is
        (Costs(1.0, 4.0), 10.0, dict.fromkeys("abcdefg", 1.0), ""),  # 3 left lapse
        (Costs(1.0, 4.0), 10.0, {"a": 4.0}, "b"),  # 6 left
        (Costs(1.0, 4.0), 10.0, {"a": 4.0, "b": 4.0}, ""),  # 2 left lapse
        (Costs(1.0, 4.0), 10.0, {"a": 4.0, "b": 1.0, "c": 1.0}, "d"),  # 4 left
        # the dearer outcome may be the known one
        (Costs(4.0, 1.0), 10.0, {"a": 1.0}, "bc"),
        # a skipped item is replaced and its cost counted
        (Costs(1.0, 4.0), 10.0, {"a": 0.0}, "bc"),
        (Costs(1.0, 4.0, 2.0), 10.0, {"a": 2.0, "b": 2.0}, "c"),
        # a correction raised the cost above the budget: nothing more
        (Costs(1.0, 4.0), 10.0, {"a": 4.0, "b": 4.0, "c": 4.0}, ""),
        # floating point: 0.1 + 0.1 + 0.1 fits into 0.3, a tenth less than the label does not
        (Costs(0.1, 0.1), 0.3, {}, "abc"),
        (Costs(0.1, 0.1), 0.3, {"a": 0.1, "b": 0.1}, "c"),
        (Costs(0.1, 0.1), 0.29, {"a": 0.1}, "b"),
        (Costs(0.7, 0.7), 2.1, {"a": 0.7, "b": 0.7}, "c"),
        # tiny and huge currencies
        (Costs(1e-12, 1e-12), 3e-12, {"a": 1e-12}, "bc"),
        (Costs(1e12, 4e12), 10e12, {"a": 1e12}, "bc"),
    ],
)
def test_by_hand(costs: Costs, budget: float, answered: dict[str, float], open_items: str) -> None:
    assert "".join(offered(RANKING, answered, budget, costs)) == open_items
    assert affords_another(answered.values(), budget, costs) == bool(open_items)


def test_a_ranking_that_is_used_up_offers_nothing() -> None:
    assert offered("ab", {"a": 0.0, "b": 0.0}, 5.0, Costs()) == ()
    assert affords_another([0.0, 0.0], 5.0, Costs())


TENTHS = st.integers(1, 40)


@given(
    costs=st.tuples(TENTHS, TENTHS),
    share=st.integers(0, 10),
    n_labels=st.integers(1, 8),
    kinds=st.lists(st.sampled_from(["known", "ood", "skip"]), min_size=200, max_size=200),
    order=st.randoms(use_true_random=False),
)
def test_any_order_buys_what_a_sequential_purchase_buys(costs, share, n_labels, kinds, order) -> None:
    known, ood = (Fraction(tenths, 10) for tenths in costs)
    skip = max(known, ood) * share / 10
    price = {"known": known, "ood": ood, "skip": skip}
    budget = max(known, ood) * n_labels + Fraction(order.randint(0, 9), 10)
    ranking = [f"i{number:03d}" for number in range(len(kinds))]
    kind = dict(zip(ranking, kinds, strict=True))

    left, in_turn = budget, set()
    for item in ranking:
        if left < max(known, ood):
            break
        in_turn.add(item)
        left -= price[kind[item]]

    floats = Costs(float(known), float(ood), float(skip))
    answered: dict[str, float] = {}
    while now := offered(ranking, answered, float(budget), floats):
        for item in order.sample(now, order.randint(1, len(now))):
            answered[item] = float(price[kind[item]])
        still = [item for item in now if item not in answered]
        assert set(still) <= set(offered(ranking, answered, float(budget), floats)), "an item was shown and taken away"
    assert set(answered) == in_turn


def test_counting() -> None:
    given = [Known("cat"), OOD, SKIP, Known("dog")]
    lines = [LedgerLine(0, i, str(i), answer, 0.1) for i, answer in enumerate(given)]
    assert (n_known(lines), n_ood(lines), spent(lines * 10)) == (2, 1, 4.0)
