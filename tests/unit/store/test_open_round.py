"""What a round may still buy: followed through many answers it is what reading it anew would find."""

from __future__ import annotations

import random

import pytest

from mqnet.errors import AnswerError
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.inbox import Given, Inbox, NotOpenError
from mqnet.store.project import Project
from mqnet.store.purchase import AHEAD, open_query
from mqnet.types import OOD, SKIP, Answer, Budget, CampaignConfig, Costs, Known, Query

ANSWERS: list[Answer] = [Known("cat"), Known("dog"), OOD, SKIP]
N_ITEMS = 160


def make(costs: Costs, budget: float, total: float | None, early: bool) -> CampaignStore:
    config = CampaignConfig(("cat", "dog"), Budget(budget, total), costs)
    store = CampaignStore.create(None, config, {})
    store.set_project(Project("p", "vector", None, None, "pool.npy", early_answers=early))
    store.open_round(RoundRecord(0, budget), [(f"i{n}", -float(n)) for n in range(N_ITEMS)])
    return store


def read_anew(store: CampaignStore) -> Query | None:
    with store.reading() as connection:
        return open_query(connection, store.config_in(connection))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("total", [None, 45.0])
def test_answers_that_share_a_transaction_see_what_each_alone_would(seed: int, total: float | None) -> None:
    costs = random.Random(seed).choice([Costs(), Costs(known=1.0, ood=4.0, skip=0.1), Costs(known=0.1, ood=3.0)])
    together, alone = (make(costs, 40.0, total, early=seed % 2 == 0) for _ in range(2))
    chance, n_bought = random.Random(seed), 0
    while (query := read_anew(alone)) is not None and query.items:
        with together.together():
            for n in range(chance.randrange(1, 30)):
                # what is open, corrections and early answers, and what is refused, from several people
                item = chance.choice([*query.items[:20], *(f"i{n}" for n in range(0, N_ITEMS, 9))])
                given = Given(item, chance.choice(ANSWERS), f"key-{seed}-{n_bought}-{n}")
                who, takes_back = chance.choice("ab"), chance.random() < 0.1
                said = [_try(Inbox(store), who, given, takes_back) for store in (together, alone)]
                assert said[0] == said[1]
                with together.reading() as connection:
                    assert together.open_query_in(connection) == read_anew(alone) == read_anew(together)
        n_bought += 1
    assert [(x.item, x.answer, x.cost) for x in together.ledger()] == [
        (x.item, x.answer, x.cost) for x in alone.ledger()
    ]
    assert len(alone.ledger()) > 10


def _try(inbox: Inbox, who: str, given: Given, takes_back: bool) -> object:
    try:
        return inbox.undo(who) if takes_back else inbox.submit(who, [given])
    except AnswerError as error:  # refused: nothing changes, and the others' answers stand
        return str(error)


def test_a_refused_answer_takes_nothing_of_the_others_with_it() -> None:
    store = make(Costs(), 3.0, None, early=False)
    inbox = Inbox(store)
    with store.together():
        inbox.submit("ann", [Given("i0", OOD, "key-0000")])
        with pytest.raises(NotOpenError):
            # the first of the two would have been bought
            inbox.submit("bob", [Given("i1", OOD, "key-0001"), Given("i99", OOD, "key-0002")])
        assert inbox.submit("bob", [Given("i1", OOD, "key-0003")])[0].charged
    assert [line.item for line in store.ledger()] == ["i0", "i1"]


def test_cheap_answers_make_room_for_more_than_was_read_ahead() -> None:
    store = make(Costs(known=0.1, ood=10.0), 20.0, None, early=False)
    inbox, n = Inbox(store), 2 * AHEAD
    with store.together():
        for i in range(n):  # two are open at a time, later one: each must be there when its turn comes
            assert inbox.submit("ann", [Given(f"i{i}", Known("cat"), f"key-{i:04d}")])[0].charged
            with store.reading() as connection:
                assert store.open_query_in(connection) == read_anew(store)
    assert [line.item for line in store.ledger()] == [f"i{i}" for i in range(n)]
