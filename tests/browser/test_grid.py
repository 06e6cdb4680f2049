"""The grid view: mark the junk, say what the rest is, confirm the page in one request."""

from __future__ import annotations

import pytest
from driving import NONE, SKIP, known, pictures, ready, saved
from fake_api import FakeCampaign
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

SMALL = {"width": 700, "height": 650}  # 4 by 2 items


TWICE = """() => {
  for (let i = 0; i < 2; i += 1)
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
}"""
"""Two presses within a moment, however busy the machine."""


def campaign_of(n: int, **settings: object) -> FakeCampaign:
    return FakeCampaign(pictures(n), ["cat", "dog"], round_budget=n, total_budget=n, **settings)  # type: ignore[arg-type]


def n_posts(campaign: FakeCampaign) -> int:
    return campaign.requests.count(("POST", "/api/answers"))


def confirm(page: Page) -> None:
    """Confirms the page once it has been in view for a glance."""
    page.wait_for_timeout(450)
    page.keyboard.press("Enter")


def cells(page: Page, n: int) -> None:
    expect(page.locator(".cell")).to_have_count(n)


def test_a_page_by_keyboard_is_one_request(served, visit) -> None:
    campaign = campaign_of(30)
    page = visit(served(campaign), viewport={"width": 1000, "height": 700})
    ready(page)
    page.keyboard.press("g")
    expect(page.locator(".cell").first).to_be_focused()
    n = 12  # six by two fit; the page comes with eleven items and grows at its end
    cells(page, n)
    for key in ("x", "2", "s", "ArrowRight", " "):
        page.keyboard.press(key)
    page.keyboard.press("r")  # the rest is cat
    expect(page.locator(".sums")).to_have_text(f"2 none of these, 1 dog, 1 skipped, {n - 4} cat")
    page.wait_for_timeout(450)
    page.evaluate(TWICE)  # the second one comes too fast: the next page was not seen yet
    expect(page.locator(".cell").first).to_have_attribute("aria-label", f"Item 1 of {n}: cat")
    assert page.locator(".cell").first.get_attribute("aria-pressed") == "false"
    saved(page)
    assert n_posts(campaign) == 1
    given = list(campaign.live().values())
    assert given == [NONE, known("dog"), SKIP, known("cat"), NONE, *[known("cat")] * (n - 5)]
    assert {vote.view for vote in campaign.votes} == {"grid"}
    assert len({vote.seconds for vote in campaign.votes}) == 1


def test_what_is_not_marked_stays_open(served, visit) -> None:
    campaign = campaign_of(8)
    page = visit(served(campaign), path="/#grid", viewport=SMALL, has_touch=True)
    cells(page, 8)
    expect(page.get_by_role("button", name="Confirm page")).to_have_attribute("aria-disabled", "true")
    page.locator(".cell").nth(1).tap()
    page.locator(".cell").nth(2).tap()
    page.locator(".cell").nth(2).tap()  # unmarked again
    page.get_by_label("A tap marks").select_option("dog")
    page.locator(".cell").nth(5).tap()
    page.wait_for_timeout(450)
    page.get_by_role("button", name="Confirm page").tap()
    cells(page, 6)
    saved(page)
    assert campaign.live() == {"photo_001.png": NONE, "photo_005.png": known("dog")}


def test_undo_takes_the_page_back_as_it_was_marked(served, visit) -> None:
    campaign = campaign_of(8)
    page = visit(served(campaign), path="/#grid", viewport=SMALL)
    cells(page, 8)
    for key in ("x", "1", "2"):
        page.keyboard.press(key)
    confirm(page)
    cells(page, 5)
    saved(page)
    page.keyboard.press("u")
    cells(page, 8)
    expect(page.locator(".cell .mark").nth(0)).to_have_text("none of these")
    expect(page.locator(".cell .mark").nth(2)).to_have_text("dog")
    assert campaign.live() == {}
    confirm(page)
    cells(page, 5)
    saved(page)
    assert list(campaign.live().values()) == [NONE, known("cat"), known("dog")]


def test_the_view_survives_a_reload_and_leads_back(served, visit) -> None:
    campaign = campaign_of(8)
    page = visit(served(campaign), viewport=SMALL)
    ready(page)
    page.keyboard.press("g")
    cells(page, 8)
    page.reload()
    cells(page, 8)
    page.keyboard.press("g")
    expect(page.locator(".caption")).to_have_text("photo_000.png")
    page.reload()
    expect(page.locator(".caption")).to_have_text("photo_000.png")
