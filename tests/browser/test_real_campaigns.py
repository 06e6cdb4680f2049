"""People in front of the real server: by keyboard, through reloads and kills, to the simulated run's ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import press, ready, saved, saving, shown
from playwright.sync_api import Page, expect
from real import Served, ledger, rows, simulated, with_images, with_texts

from people import digits_campaign, let_in
from processes import Zygote

pytestmark = pytest.mark.browser

SMALL = {"budget": 6.0, "rounds": 3, "cost_ood": 1.0, "n_items": 60}
PATIENCE = 60.0


@pytest.fixture(scope="module")
def mqnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.close()


def keys_of(given: Any) -> dict[str, str]:
    """The key that says the truth about each item."""
    labels = given.truth.labels.tolist()
    return {i: str(label + 1) if label >= 0 else "x" for i, label in zip(given.truth.ids, labels, strict=True)}


def is_over(page: Page) -> bool:
    return page.get_by_role("heading", name="The budget is spent").is_visible()


def test_by_keyboard_through_undo_reload_and_kill_to_the_simulated_ledger(mqnet, visit, tmp_path: Path) -> None:
    given = digits_campaign(tmp_path, **SMALL)
    expected = simulated(given, tmp_path / "simulated")
    folder = tmp_path / "people"
    with_images(given, folder)
    (token,) = let_in(folder, "ada")
    keys, given_to = keys_of(given), list[str]()
    with Served(mqnet, folder) as server:
        page = visit(server.url, token)

        def answer(key: str | None = None) -> None:
            ready(page)
            given_to.append(press(page, key or keys[shown(page)]))

        for _ in range(2):
            answer()
        saved(page)
        page.reload()
        ready(page)
        assert shown(page) not in given_to
        answer()
        saved(page)
        server.kill()
        for _ in range(2):  # into the void, and kept
            answer()
        expect(saving(page)).to_have_text("offline, 2 waiting")
        server.start()
        saved(page)
        wrong = "1" if keys[shown(page)] != "1" else "2"
        answer(wrong)  # the round's last item, wrongly; the round closes
        ready(page)
        page.keyboard.press("u")
        expect(page.locator(".correct")).to_be_visible()
        assert press(page, keys[given_to[-1]]) == given_to[-1]
        began = time.monotonic()
        while not is_over(page):
            assert time.monotonic() - began < PATIENCE
            if page.locator(".choice[aria-disabled=false]").count():
                answer()
            else:
                page.wait_for_timeout(50)
        saved(page)
    found = ledger(folder)
    assert [line[2:] for line in found if line[0] == 0] == [line[2:] for line in expected if line[0] == 0]
    assert {line[2]: keys[str(line[2])] for line in found} == {item: keys[item] for item in given_to}
    assert len(given_to) == len(set(given_to)) == len(found) == len(expected)
    live = rows(folder, "SELECT item FROM votes WHERE state = 'live'")
    assert len(live) == len(found)
    assert rows(folder, "SELECT count(*) FROM votes") == [(len(found) + 1,)]  # one was corrected
    assert rows(folder, "SELECT count(*) FROM votes WHERE seconds IS NULL OR seconds <= 0") == [(0,)]


def test_two_people_on_texts_share_the_work(mqnet, visit, tmp_path: Path) -> None:
    given = digits_campaign(tmp_path, **SMALL)
    expected = simulated(given, tmp_path / "simulated")
    folder = tmp_path / "people"
    with_texts(given, folder)
    keys = keys_of(given)
    with Served(mqnet, folder) as server:
        pages = [visit(server.url, token) for token in let_in(folder, "ada", "grace")]
        for page in pages:
            ready(page)  # whoever asked first holds the round's six items, and parts with some
        counts = [0, 0]
        began = time.monotonic()
        while not all(map(is_over, pages)):
            assert time.monotonic() - began < PATIENCE
            for i, page in enumerate(pages):
                if page.locator(".choice[aria-disabled=false]").count():
                    item = shown(page)
                    expect(page.locator(".reading")).to_have_text(f"This is item {item}.")
                    page.keyboard.press(keys[item])
                    expect(page.locator(".caption")).not_to_have_text(item)
                    saved(page)
                    counts[i] += 1
            pages[0].wait_for_timeout(20)
        for page in pages:
            saved(page)
    assert ledger(folder) == expected
    assert min(counts) > 0
    # an item that changed hands while its page had it in front may have two votes, never two lines
    assert rows(folder, "SELECT count(DISTINCT item) FROM votes WHERE state = 'live'") == [(len(expected),)]
    assert rows(folder, "SELECT count(*) FROM votes") == [(sum(counts),)]
