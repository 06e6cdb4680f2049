"""What waits for an owner: disagreements and flags, until the owner has answered."""

from __future__ import annotations

import pytest

from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.consensus import REVIEW
from mqnet.store.inbox import Given, Inbox
from mqnet.store.items import Item
from mqnet.store.overview import Overview
from mqnet.store.project import Project
from mqnet.types import Budget, CampaignConfig, Costs


def test_an_answer_in_the_review_settles_what_was_flagged_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("mqnet.store.inbox.time.time", lambda: now[0])
    store = CampaignStore.create(None, CampaignConfig(("cat", "dog"), Budget(2.0), Costs()), {})
    store.set_project(Project("p", "text", None, None, "pool.npy"))
    store.add_items(Item(item, "text", item) for item in ("a", "b"))
    store.open_round(RoundRecord(0, 2.0), [("a", 1.0), ("b", 0.0)])
    inbox, overview = Inbox(store), Overview(store)

    def waiting() -> list[str]:
        now[0] += 1
        cases = overview.review()
        assert overview.dashboard().n_flags == sum(bool(case.flags) for case in cases)
        return [case.item for case in cases]

    inbox.submit("ann", [Given("a", "cat", "key-of-ann-1")])
    assert waiting() == []
    inbox.flag("ann", "a", True, "or a dog?")
    assert waiting() == ["a"]
    inbox.submit("ann", [Given("a", "dog", "key-of-ann-2")])  # not a review: the flag stays
    assert waiting() == ["a"]
    inbox.submit("eve", [Given("a", "cat", "key-of-eve-1", view=REVIEW)])
    assert waiting() == []
    inbox.flag("bob", "a", True)  # flagged anew
    assert waiting() == ["a"]
    inbox.flag("bob", "a", False)
    assert waiting() == []
