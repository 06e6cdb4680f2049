"""Ask and tell in every order, with crashes anywhere: what must hold whatever happens."""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crashes import MOMENTS, Death, Died, abandon, careless_disk
from mqnet.errors import AnswerError
from mqnet.ids import ItemIds
from mqnet.loop.audit import draw
from mqnet.loop.learner import ActiveLearner
from mqnet.rng import Key
from mqnet.types import OOD, SKIP, Answer, Known

N_ITEMS = 40
CLASSES = ("cat", "dog", "eel")
VECTORS = np.random.Generator(np.random.PCG64(0)).normal(size=(N_ITEMS, 4)).astype(np.float32)
ITEMS = [f"img_{number:02d}.png" for number in np.random.Generator(np.random.PCG64(1)).permutation(N_ITEMS)]

ANSWERS = st.sampled_from([Known("cat"), Known("dog"), Known("eel"), OOD, OOD, SKIP])
COSTS = [("1", "1", "0"), ("1", "4", "0"), ("4", "1", "0"), ("0.1", "0.3", "0"), ("0.3", "0.1", "0.1"), ("2", "3", "1")]


def purchased_in_turn(
    ranking: list[str], answers: dict[str, Answer], cost: dict[type[Known] | Answer, Fraction], budget: Fraction
) -> list[str]:
    """The purchase as METHOD 1 tells it: one item after the other while the dearer outcome is covered."""
    bought: list[str] = []
    for item in ranking:
        if budget < max(cost[Known], cost[OOD]):
            break
        bought.append(item)
        budget -= price(answers[item], cost)
    return bought


def price(answer: Answer, cost: dict[type[Known] | Answer, Fraction]) -> Fraction:
    return cost[Known] if isinstance(answer, Known) else cost[answer]


class Campaign(RuleBasedStateMachine):
    """The learner beside a plain account of what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = careless_disk()
        self.disk.__enter__()
        self.folder = Path(tempfile.mkdtemp(prefix="mqnet-campaign-"))
        self.answers: dict[str, Answer] = {}
        self.round_of: dict[str, int] = {}
        self.log: list[tuple[str, str]] = []
        self.raised: dict[int, Fraction] = {}
        self.kept: dict[int, Fraction] = {}  # what each round was charged for skips that were queued again
        self.disturbed: set[int] = set()  # rounds in which an answer was corrected or an item queued again
        self.stood: list[dict[str, Answer]] = []  # the answers each round was ranked on
        self.n_sure: list[int] = []
        self.n_drawn: list[int] = []  # by the audit, in each round that was seen so far

    @initialize(
        costs=st.sampled_from(COSTS),
        n_labels=st.integers(1, 6),
        odd=st.sampled_from(["0", "0.5"]),
        total=st.sampled_from([None, None, "1.5", "3"]),
        strategy=st.sampled_from(["random", "confidence", "product"]),
        rounds=st.integers(1, 3),
        seed=st.integers(0, 3),
        audit=st.sampled_from(["0", "0.05", "0.29", "0.5"]),
        initial=st.sampled_from(["random", "random", "diverse"]),
    )
    def begin(self, costs, n_labels, odd, total, strategy, rounds, seed, audit, initial) -> None:
        known, ood, skip = (Fraction(cost) for cost in costs)
        self.cost = {Known: known, OOD: ood, SKIP: skip}
        self.budget = max(known, ood) * (n_labels + Fraction(odd))
        self.total = self.budget * Fraction(total) if total else None
        self.audit = Fraction(audit)
        self.arguments = {
            "budget": float(self.budget),
            "total_budget": float(self.total) if self.total else None,
            "cost_known": float(known),
            "cost_ood": float(ood),
            "cost_skip": float(skip),
            "rounds": rounds,
            "strategy": strategy,
            "model": {"name": "head", "hidden": 4, "n_steps": 2, "batch_size": 8},
            "seed": seed,
            "audit_share": float(self.audit),
            "initial": initial,
            "folder": self.folder,
        }
        self.open()

    def open(self) -> None:
        from mqnet.data.pools import ArrayPool

        self.learner = ActiveLearner(ArrayPool(VECTORS, ITEMS), CLASSES, **self.arguments)

    # -- what people and machines do -----------------------------------------------------------------------------------

    @rule()
    def ask(self) -> None:
        query = self.learner.ask()
        assert self.learner.ask() == query
        if query is None:
            return
        assert query.items
        assert not set(query.items) & set(self.answers), "an item was asked twice"
        ranking = self.learner.store.ranking(query.round)
        places = [ranking.index(item) for item in query.items]
        assert places == sorted(places)
        skipped_over = [item for item in ranking[: places[-1]] if item not in query.items]
        assert all(item in self.answers for item in skipped_over), "the query is not the beginning of the ranking"

    @rule(data=st.data(), share=st.sampled_from([0.0, 0.3, 0.6, 1.0]), again=st.booleans())
    def tell_some(self, data, share, again) -> None:
        query = self.learner.ask()
        if query is None:
            return
        n = max(1, round(share * len(query.items)))
        some = data.draw(st.permutations(query.items), label="in the order")[:n]
        given = {item: data.draw(ANSWERS, label=item) for item in some}
        repeated = dict(list(self.answers.items())[-2:]) if again else {}
        self.learner.tell({**repeated, **given})
        self._told(given, query.round)
        if self.total is not None:  # corrections may pass the total, a purchase may not
            assert sum(self._spent().values()) <= self.total

    @rule(data=st.data())
    @precondition(lambda self: self.answers)
    def correct(self, data) -> None:
        item = data.draw(st.sampled_from(sorted(self.answers)), label="item")
        answer = data.draw(ANSWERS, label="now")
        self.learner.tell({item: answer})
        if answer != self.answers[item]:
            round_ = self.round_of[item]
            gap = price(answer, self.cost) - price(self.answers[item], self.cost)
            self.raised[round_] = self.raised.get(round_, Fraction(0)) + max(Fraction(0), gap)
            self.disturbed.add(round_)
            if self.total is not None:  # an open round may have less of the total left than when it began
                self.disturbed.add(self.learner.store.rounds()[-1].round)
            self._told({item: answer}, round_)

    @rule(data=st.data())
    def requeue(self, data) -> None:
        skipped = sorted(item for item, answer in self.answers.items() if answer is SKIP)
        others = sorted(item for item, answer in self.answers.items() if answer is not SKIP)
        if others:
            with pytest.raises(AnswerError, match="was not skipped"):
                self.learner.requeue([*skipped, others[0]])
        if skipped:
            item = data.draw(st.sampled_from(skipped), label="item")
            self.learner.requeue([item])
            del self.answers[item]
            round_ = self.round_of.pop(item)
            self.kept[round_] = self.kept.get(round_, Fraction(0)) + self.cost[SKIP]
            self.disturbed.add(round_)
            self.log.append((item, "requeued"))

    @rule(kind=st.sampled_from(["item", "not open", "class", "number"]))
    def tell_nonsense(self, kind) -> None:
        query = self.learner.ask()
        if query is None:
            with pytest.raises(AnswerError, match="no round is open"):
                self.learner.tell({next(item for item in ITEMS if item not in self.answers): OOD})
            return
        before = self.learner.store.history()
        closed = [item for item in ITEMS if item not in self.answers and item not in query.items]
        wrong = {
            "item": {"img_99.png": Known("cat")},
            "not open": {closed[-1]: OOD} if closed else {"nothing": OOD},
            "class": {query.items[0]: Known("cow")},
            "number": {query.items[0]: 1},
        }[kind]
        good = {item: Known("dog") for item in query.items[1:]}
        with pytest.raises(AnswerError) as error:
            self.learner.tell({**good, **wrong})
        assert next(iter(wrong)) in str(error.value)
        assert self.learner.store.history() == before
        assert self.learner.ask() == query

    @rule()
    def crash(self) -> None:
        query = self.learner.ask()
        abandon(self.learner)
        self.open()
        assert self.learner.ask() == query

    @rule(at=st.integers(0, 4), moment=st.sampled_from(MOMENTS), data=st.data())
    def crash_at_a_write(self, at, moment, data) -> None:
        query = self.learner.ask()
        if query is None:
            return
        given = {item: data.draw(ANSWERS, label=item) for item in query.items}
        try:
            with Death(at, moment).staged():
                self.learner.tell(given)
                accepted = True
                self.learner.ask()
        except Died:
            abandon(self.learner)
            self.open()
            # the answers are the first write of a tell: they are there unless death came before it was through
            accepted = at > 0 or moment == "after"
        if accepted:
            self._told(given, query.round)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def _told(self, given: dict[str, Answer], round_: int) -> None:
        for item, answer in given.items():
            self.answers[item] = answer
            self.round_of[item] = round_
            self.log.append((item, answer.name if isinstance(answer, Known) else answer.value))

    def _spent(self) -> dict[int, Fraction]:
        spent = dict(self.kept)
        for item, round_ in self.round_of.items():
            spent[round_] = spent.get(round_, Fraction(0)) + price(self.answers[item], self.cost)
        return spent

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "learner"):
            return
        ledger = self.learner.ledger
        assert {line.item: line.answer for line in ledger} == self.answers
        assert {line.item: line.round for line in ledger} == self.round_of
        assert len(ledger) == len(self.answers)
        assert [(line.round, line.position) for line in ledger] == sorted((x.round, x.position) for x in ledger)
        assert all(line.cost == float(price(line.answer, self.cost)) for line in ledger)
        assert [(item, name or kind) for item, kind, name, _ in self.learner.store.history()] == self.log

    @invariant()
    def what_a_round_was_ranked_on_stays_known(self) -> None:
        if not hasattr(self, "learner"):
            return
        for record in self.learner.store.rounds():
            if len(self.stood) == record.round:
                earlier = [item for item, round_ in self.round_of.items() if round_ < record.round]
                self.stood.append({item: self.answers[item] for item in earlier})
            lines = self.learner.lines_before(record.round)
            assert {line.item: line.answer for line in lines} == self.stood[record.round]
            assert [(line.round, line.position) for line in lines] == sorted((x.round, x.position) for x in lines)

    @invariant()
    def no_round_overspends(self) -> None:
        if not hasattr(self, "learner"):
            return
        spent = self._spent()
        assert self.learner.spent == pytest.approx(float(sum(spent.values())))
        for round_, cost in spent.items():
            assert cost <= self.budget + self.raised.get(round_, 0)
        if self.total is not None:
            assert sum(spent.values()) <= self.total + sum(self.raised.values())
        for record in self.learner.store.rounds():
            if record.closed and record.round not in self.disturbed:
                bought = {item for item, round_ in self.round_of.items() if round_ == record.round}
                ranking = self.learner.store.ranking(record.round)
                # a float of the store, back to the number it was written for
                budget = Fraction(record.budget).limit_denominator(1000)
                in_turn = purchased_in_turn([*ranking], _or_stop(self.answers, bought), self.cost, budget)
                assert set(in_turn) == bought

    @invariant()
    def the_audit_is_a_uniform_draw_and_all_of_it_is_bought(self) -> None:
        if not hasattr(self, "learner"):
            return
        drawn, store = self.learner.store.drawn(), self.learner.store
        for record in store.rounds():
            ranking, mine = store.ranking(record.round), drawn.get(record.round, [])
            n_sure = int(Fraction(record.budget).limit_denominator(1000) // max(self.cost[Known], self.cost[OOD]))
            whole = record.round == 0 and self.arguments["initial"] == "random"
            if len(self.n_drawn) == record.round:  # seen for the first time: nothing of it was queued again
                left = [item for item in ITEMS if self.round_of.get(item, record.round) == record.round]
                shared = sum(self.n_sure[int(self.arguments["initial"] == "random") :])
                carried = int(self.audit * (shared + n_sure)) - int(self.audit * shared)
                expected = min(n_sure if whole else carried, len(left))
                assert len(mine) == expected
                if not whole:
                    key = Key(self.arguments["seed"]).child("round", record.round, "audit")
                    assert {item for item, _ in draw(ItemIds.of(left), expected, key)} == set(mine)
                self.n_drawn.append(expected)
                self.n_sure.append(n_sure)
            assert len(mine) == self.n_drawn[record.round]
            assert set(mine) <= set(ranking[: max(n_sure, 0)])
            if record.closed and record.round not in self.disturbed:
                assert set(mine) <= {item for item, round_ in self.round_of.items() if round_ == record.round}
        tagged = {line.item: line.audit for line in self.learner.ledger}
        assert tagged == {line.item: line.item in drawn.get(line.round, []) for line in self.learner.ledger}

    def teardown(self) -> None:
        if hasattr(self, "learner"):
            for _ in range(8 * N_ITEMS):
                query = self.learner.ask()
                if query is None:
                    break
                self.learner.tell(dict.fromkeys(query.items, OOD))
                self._told(dict.fromkeys(query.items, OOD), query.round)
            assert self.learner.ask() is None, "the campaign does not end"
            self.nothing_is_lost()
            self.what_a_round_was_ranked_on_stays_known()
            self.no_round_overspends()
            self.the_audit_is_a_uniform_draw_and_all_of_it_is_bought()
            assert all(record.closed for record in self.learner.store.rounds())
            self.learner.close()
        shutil.rmtree(self.folder)
        self.disk.__exit__(None, None, None)


class _or_stop(dict):
    """Answers of a round; an item that was not bought is an item the sequential purchase must not reach."""

    def __init__(self, answers: dict[str, Answer], bought: set[str]) -> None:
        super().__init__({item: answers[item] for item in bought})

    def __missing__(self, item: str) -> Answer:
        raise AssertionError(f"bought one after the other, '{item}' would have been asked too")


TestCampaign = Campaign.TestCase
TestCampaign.settings = settings(max_examples=30, stateful_step_count=20)
