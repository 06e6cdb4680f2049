"""Items lent, votes kept, consensus bought, answers taken back: the store without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqnet.errors import AnswerError, ConfigError, InputError, PoolError
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.consensus import REVIEW, Vote, agreement, dawid_skene, decide
from mqnet.store.health import Health
from mqnet.store.inbox import Given, Inbox, NotOpenError, UnknownItemError
from mqnet.store.items import Item
from mqnet.store.people import OWNER, People
from mqnet.store.project import Project
from mqnet.types import OOD, SKIP, Answer, Budget, CampaignConfig, Costs, Known

CAT, DOG = Known("cat"), Known("dog")
RANKING = [(f"i{n}", -float(n)) for n in range(9)]


def make(n_open: int = 3, **settings: object) -> CampaignStore:
    """A campaign in memory with a round of three items open, nine ranked."""
    config = CampaignConfig(("cat", "dog"), Budget(float(n_open)), Costs())
    store = CampaignStore.create(None, config, {})
    given = {"name": "p", "kind": "text", "root": None, "encoder": None, "vectors": "pool.npy", **settings}
    store.set_project(Project(**given))
    store.add_items(Item(item, "text", f"text of {item}") for item, _ in RANKING)
    store.open_round(RoundRecord(0, float(n_open)), RANKING)
    return store


@pytest.fixture(params=["on", "off"])
def early(request: pytest.FixtureRequest) -> bool:
    return request.param == "on"


def lent(inbox: Inbox, who: str, n: int = 3) -> list[str]:
    return [offer.item for offer in inbox.next(who, n)]


KEYS = iter(range(10**6))


def say(inbox: Inbox, who: str, item: str, answer: Answer | str, key: str = "", view: str = "focus"):
    return inbox.submit(who, [Given(item, answer, key or f"key{next(KEYS)}", 1.5, view)])[0]


def ledger(store: CampaignStore) -> dict[str, Answer]:
    return {line.item: line.answer for line in store.ledger()}


# -- lending


def test_nobody_is_lent_what_another_has(early: bool) -> None:
    inbox = Inbox(make(early_answers=early))
    assert lent(inbox, "ann", 2) == ["i0", "i1"]
    assert lent(inbox, "bob", 3) == (["i2", "i3", "i4"] if early else ["i2"])
    assert lent(inbox, "ann", 3) == (["i0", "i1", "i5"] if early else ["i0", "i1"])  # hers come first, again
    assert [offer.early for offer in inbox.next("ann", 9)] == ([False, False] + [True] * 4 if early else [False, False])


def test_a_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, now = Inbox(make(lease_seconds=60.0)), [1000.0]
    monkeypatch.setattr("mqnet.store.inbox.time.time", lambda: now[0])
    assert lent(inbox, "ann") == ["i0", "i1", "i2"]
    now[0] += 59
    assert lent(inbox, "bob", 1) == ["i3"]
    now[0] += 2
    assert lent(inbox, "bob", 3) == ["i0", "i1", "i2"]
    # her answers come late but are not lost; his that come later still change nothing and count against nobody
    assert say(inbox, "ann", "i0", "cat").charged
    assert say(inbox, "bob", "i0", "dog").charged
    assert ledger(inbox._store) == {"i0": CAT}


def test_nobody_waits_while_another_holds_plenty() -> None:
    inbox = Inbox(make(early_answers=False, n_open=9))
    assert lent(inbox, "ann", 9) == [f"i{n}" for n in range(9)]
    assert lent(inbox, "bob", 9) == ["i5", "i6", "i7", "i8"]  # the end of her list: she is far from it
    assert lent(inbox, "ann", 9) == ["i0", "i1", "i2", "i3", "i4"]
    assert lent(inbox, "cat", 1) == ["i3"]  # the first of what ann can spare
    for item in ("i0", "i1", "i2", "i4"):
        say(inbox, "ann", item, "cat")
    assert lent(inbox, "ann", 9) == ["i8"]  # bob keeps three of his four
    assert lent(inbox, "dan", 9) == ["i7"]
    assert lent(inbox, "eve", 9) == []  # two are few enough to keep


def test_what_was_taken_back_is_not_taken_over() -> None:
    inbox = Inbox(make(early_answers=False, n_open=9))
    lent(inbox, "ann", 9)
    say(inbox, "ann", "i0", "cat")
    inbox.undo("ann")
    assert "i0" not in lent(inbox, "bob", 9)
    assert lent(inbox, "ann", 9)[0] == "i0"


# -- answering


def test_an_answer_is_bought_once_however_often_it_is_sent(early: bool) -> None:
    store = make(early_answers=early)
    inbox = Inbox(store)
    first = say(inbox, "ann", "i0", "cat", key="k")
    assert (first.early, first.charged) == (False, True)
    assert say(inbox, "ann", "i0", "cat", key="k") == first
    assert say(inbox, "ann", "i0", "dog", key="k") == first  # the key says that this is the answer from before
    assert [(line.item, line.answer, line.cost, line.annotator) for line in store.ledger()] == [("i0", CAT, 1.0, "ann")]
    with pytest.raises(InputError, match="was used for another answer"):
        say(inbox, "ann", "i1", "cat", key="k")
    with pytest.raises(InputError, match="was used for another answer"):
        say(inbox, "bob", "i0", "cat", key="k")
    say(inbox, "ann", "i0", OOD)
    assert ledger(store) == {"i0": OOD}
    assert [(item, kind) for item, kind, *_ in store.history()] == [("i0", "known"), ("i0", "ood")]


def test_answers_are_taken_all_or_none() -> None:
    store = make(early_answers=False)
    inbox = Inbox(store)
    for item, answer, error in (
        ("i8", "cat", NotOpenError),
        ("i1", "ca", AnswerError),
        ("zz", "cat", UnknownItemError),
    ):
        with pytest.raises(error, match=item):
            inbox.submit("ann", [Given("i0", "cat", "a"), Given(item, answer, "b")])
    assert not store.ledger()
    assert Health(store).revision() == (0, 0)


def test_an_early_answer_waits_for_its_query() -> None:
    store = make()
    inbox = Inbox(store)
    receipt = say(inbox, "ann", "i4", "dog")
    assert (receipt.early, receipt.charged) == (True, False)
    inbox.settle()
    assert not store.ledger()
    for item in ("i0", "i1", "i2"):
        say(inbox, "ann", item, "cat")
    store.close_round(0, None, {})
    assert lent(inbox, "ann", 9) == ["i3", "i5", "i6", "i7", "i8"]  # nobody waits while the loop trains
    store.open_round(RoundRecord(1, 3.0), [("i4", 1.0), ("i8", 0.5), ("i5", 0.1), ("i6", 0.0)])
    inbox.settle()
    assert [(line.round, line.item, line.answer) for line in store.ledger()][3:] == [(1, "i4", DOG)]
    Health(store).say("done")
    for item in ("i8", "i5"):
        say(inbox, "ann", item, "cat")
    store.close_round(1, None, {})
    assert lent(inbox, "ann", 9) == []  # the campaign is over: nobody works for nothing


def test_early_answers_can_make_room_for_each_other() -> None:
    store = make()
    inbox = Inbox(store)
    for n in (3, 4):
        say(inbox, "ann", f"i{n}", "cat")
    for n in (0, 1, 2):
        say(inbox, "ann", f"i{n}", SKIP)
    inbox.settle()
    assert ledger(store) == {"i0": SKIP, "i1": SKIP, "i2": SKIP, "i3": CAT, "i4": CAT}


# -- several people on one item


def test_overlap_waits_for_enough_equal_answers() -> None:
    store = make(overlap=2)
    inbox = Inbox(store)
    assert lent(inbox, "ann") == lent(inbox, "bob") == ["i0", "i1", "i2"]
    assert lent(inbox, "cat") == ["i3", "i4", "i5"]
    assert not say(inbox, "ann", "i0", "cat").charged
    assert say(inbox, "bob", "i0", "cat").charged
    say(inbox, "ann", "i1", "cat")
    assert not say(inbox, "bob", "i1", "dog").charged
    assert lent(inbox, "cat") == ["i1", "i3", "i4"]  # split: a third person is asked
    assert say(inbox, "cat", "i1", "dog").charged
    assert [(line.item, line.answer, line.annotator) for line in store.ledger()] == [
        ("i0", CAT, "ann, bob"),
        ("i1", DOG, "bob, cat"),
    ]
    say(inbox, "own", "i1", OOD, view=REVIEW)
    assert ledger(store) == {"i0": CAT, "i1": OOD}
    say(inbox, "ann", "i1", "dog")
    assert ledger(store)["i1"] == OOD  # the owner's word stands


@pytest.mark.parametrize(
    ("said", "overlap", "expected"),
    [
        ("", 1, None),
        ("c", 1, CAT),
        ("c", 2, None),
        ("cd", 2, None),
        ("cd", 1, None),
        ("cdd", 2, DOG),
        ("cddc", 3, None),
        ("dDc", 3, DOG),
        ("ddC", 2, CAT),
        ("dCD", 2, DOG),
    ],
)
def test_what_votes_come_to(said: str, overlap: int, expected: Answer | None) -> None:
    votes = [
        Vote("i", str(n), {"c": CAT, "d": DOG}[a.lower()], REVIEW if a.isupper() and said != "dDc" else "focus")
        for n, a in enumerate(said)
    ]
    assert decide(votes, overlap) == expected


def test_dawid_and_skene_know_whom_to_trust() -> None:
    truth = {f"i{n}": (CAT, DOG, OOD)[n % 3] for n in range(30)}
    votes = [Vote(item, who, answer) for item, answer in truth.items() for who in ("ann", "bob")]
    # eve calls everything a cat; on the last item she and a beginner outvote ann
    votes += [Vote(item, "eve", CAT) for item in truth]
    votes += [Vote("last", "ann", DOG), Vote("last", "eve", CAT), Vote("last", "new", SKIP)]
    opinion = dawid_skene(votes)
    assert {item: answer for item, (answer, _) in opinion.answers.items()} == {**truth, "last": DOG}
    assert opinion.answers["last"][1] > 0.9
    assert set(opinion.reliability) == {"ann", "bob", "eve"}
    assert opinion.reliability["ann"] > 0.99
    assert opinion.reliability["eve"] == pytest.approx(10 / 31, abs=0.02)
    assert dawid_skene([]).answers == {}


def test_agreement_counts_pairs() -> None:
    votes = [Vote("a", "x", CAT), Vote("a", "y", CAT), Vote("a", "z", DOG), Vote("b", "x", DOG)]
    assert agreement(votes) == pytest.approx(1 / 3)
    assert agreement(votes, "z") == 0.0
    assert agreement(votes, "x") == 0.5
    assert agreement(votes[3:]) is None


# -- taking back


def test_undo_walks_back_through_an_open_round(early: bool) -> None:
    store = make(early_answers=early)
    inbox = Inbox(store)
    lent(inbox, "ann", 3)
    say(inbox, "ann", "i1", "cat")
    say(inbox, "ann", "i0", "dog")
    undone = inbox.undo("ann")
    assert (undone.item, undone.answer, undone.withdrawn, undone.early) == ("i0", DOG, True, False)
    assert ledger(store) == {"i1": CAT}
    assert inbox.undo("ann").item == "i1"
    assert not store.ledger()
    assert lent(inbox, "bob", 1) != ["i0"]
    assert sorted(lent(inbox, "ann", 3)[:2]) == ["i0", "i1"]
    with pytest.raises(NotOpenError, match="left to take back"):
        inbox.undo("ann")
    assert [kind for _, kind, *_ in store.history()] == ["known", "known", "withdrawn", "withdrawn"]
    assert say(inbox, "ann", "i0", "cat").charged


def test_undo_across_rounds_returns_for_correction() -> None:
    store = make()
    inbox = Inbox(store)
    for n, name in enumerate(("cat", "dog", "cat")):
        say(inbox, "ann", f"i{n}", name)
    store.close_round(0, None, {})
    store.open_round(RoundRecord(1, 3.0), RANKING[3:])
    say(inbox, "ann", "i3", "dog")
    steps = [inbox.undo("ann") for _ in range(3)]
    assert [(step.item, step.withdrawn) for step in steps] == [("i3", True), ("i2", False), ("i1", False)]
    assert ledger(store) == {"i0": CAT, "i1": DOG, "i2": CAT}  # a closed round's answers stand until replaced
    assert say(inbox, "ann", "i1", OOD).charged
    assert ledger(store)["i1"] == OOD
    assert [line.round for line in store.ledger()] == [0, 0, 0]
    assert inbox.undo("ann").item == "i1"  # a new answer starts a new walk
    assert lent(inbox, "ann")[0] == "i3"


def test_undo_of_one_of_two_votes() -> None:
    store = make(overlap=2)
    inbox = Inbox(store)
    for who in ("ann", "bob", "cat"):
        say(inbox, who, "i0", "dog")
    inbox.undo("cat")
    assert ledger(store) == {"i0": DOG}
    inbox.undo("ann")
    assert not store.ledger()
    assert say(inbox, "ann", "i0", "dog").charged


def test_an_early_answer_can_be_taken_back() -> None:
    store = make()
    inbox = Inbox(store)
    say(inbox, "ann", "i5", "dog")
    undone = inbox.undo("ann")
    assert (undone.item, undone.early, undone.withdrawn) == ("i5", True, True)
    assert lent(inbox, "ann", 3) == ["i5", "i0", "i1"]


def test_a_round_stays_open_for_an_answer_taken_back_while_it_was_learned_from() -> None:
    store = make()
    inbox = Inbox(store)
    for n in range(3):
        say(inbox, "ann", f"i{n}", "cat")
    assert store.offered().items == ()
    inbox.undo("ann")
    store.close_round(0, None, {})
    assert store.offered().items == ("i2",)


# -- people, items, settings


def test_only_hashes_of_tokens_are_kept(tmp_path: Path) -> None:
    store = CampaignStore.create(tmp_path, CampaignConfig(("cat",), Budget(3.0)), {})
    people = People(store)
    owner, ann = people.add("owner", OWNER), people.add("ann bee")
    assert len(owner) >= 43
    assert people.known_by(ann).name == "ann bee"
    assert people.known_by(owner).role == OWNER
    for wrong in ("", ann[:-1], ann + "a", "é" * 43, "\ud800"):
        assert people.known_by(wrong) is None
    with pytest.raises(InputError, match="already"):
        people.add("ann bee")
    people.revoke("ann bee")
    assert people.known_by(ann) is None
    again = people.add("ann bee")
    assert again != ann
    assert people.known_by(again).name == "ann bee"
    with pytest.raises(InputError, match="only owner"):
        people.revoke("owner")
    for name in ("", "a,b", "<b>", "x" * 41, " a", "a\n"):
        with pytest.raises(InputError, match="not a usable name"):
            people.add(name)
    with pytest.raises(InputError, match="is no role"):
        people.add("eve", "root")
    store.close()
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for token in (owner, ann, again):
        assert token.encode() not in everything


def test_a_million_items_would_fit() -> None:
    store = make()
    store.add_items(Item(f"n{n}", "image", f"a/{n}.png") for n in range(12_000))
    assert store.item("n11999") == Item("n11999", "image", "a/11999.png")
    assert store.items(["n7", "zz", "i3"]) == {"n7": Item("n7", "image", "a/7.png"), "i3": store.item("i3")}
    for wrong, message in (([Item("n1", "text")], "given twice"), ([Item("q", "film")], "no kind of item")):
        with pytest.raises(PoolError, match=message):
            store.add_items([Item("before", "text"), *wrong])
        assert store.item("before") is None


def test_settings_come_back_and_bad_ones_are_refused() -> None:
    store = make(overlap=3, root="/photos")
    assert (store.project().overlap, store.project().root) == (3, "/photos")
    for wrong in ({"overlap": 0}, {"lease_seconds": 0.0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            make(**wrong)


def test_the_loop_says_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    health, now = Health(make()), [1000.0]
    monkeypatch.setattr("mqnet.store.health.time.time", lambda: now[0])
    assert health.worker() is None
    health.say("training", "on 3 labels", 1)
    now[0] += 5
    health.beat()
    health.say("training", "still", 1)
    state = health.worker()
    assert (state.state, state.message, state.round, state.since) == ("training", "still", 1, 1000.0)
    assert state.alive()
    now[0] += 11
    assert not state.alive()
    health.keep_insight(0, {"round": 0})
    health.keep_insight(1, {"round": 1, "accuracy": 0.5})
    health.keep_insight(1, {"round": 1, "accuracy": 0.75})
    assert health.insight() == {"round": 1, "accuracy": 0.75}
    assert health.insight(0) == {"round": 0}
    assert health.insight(7) is None
