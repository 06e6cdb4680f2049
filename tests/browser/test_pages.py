"""Dashboard, review and people: what they show, and what they say when there is nothing to show."""

from __future__ import annotations

import pytest
from campaigns import at_the_beginning, in_the_middle, unknown
from driving import known
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser


def card(page: Page, title: str) -> Locator:
    return page.locator(".card", has=page.get_by_role("heading", name=title, exact=True))


def test_the_dashboard_shows_values_with_their_bounds_and_how(served, visit) -> None:
    page = visit(served(in_the_middle()), path="/dashboard")
    expect(card(page, "Accuracy")).to_contain_text("87%")
    expect(card(page, "Accuracy")).to_contain_text("95% interval: 79% to 93%")
    expect(card(page, "Accuracy")).to_contain_text("On 34 audited items of known classes.")
    expect(card(page, "Junk in the pool")).to_contain_text("42%")
    expect(card(page, "Known items left")).to_contain_text("1,204")
    expect(card(page, "Saved against random")).to_contain_text("Spent on junk: 38. Random labelling: about 84.")
    expect(card(page, "What another round would buy")).to_contain_text("expected to buy 1.2 points")
    expect(page.locator(".wanted img")).to_have_count(16)
    expect(card(page, "Wanted most")).to_contain_text("the model hesitates")
    expect(card(page, "People")).to_contain_text("not timed")
    page.get_by_role("link", name="Review 1 disagreement and 1 flag").click()
    expect(page.locator(".queued")).to_have_count(2)


def test_charts_say_the_same_in_tables(served, visit) -> None:
    page = visit(served(in_the_middle()), path="/dashboard")
    chart = card(page, "Bought per round")
    chart.get_by_text("As a table").click()
    expect(chart.locator("tbody tr").nth(2)).to_have_text("24192" + "50 of 50")
    bars = chart.locator("svg rect")
    assert bars.count() == sum(
        n > 0 for counts in in_the_middle().dashboard["rounds"] for n in list(counts.values())[1:4]
    )
    heights = {
        name: float(chart.locator(f"svg rect.{name}").nth(2).get_attribute("height") or 0) for name in ("known", "none")
    }
    assert (heights["known"] + 1) / (heights["none"] + 1) == pytest.approx(41 / 9, rel=0.01)
    plane = card(page, "What the ranking has learned")
    plane.get_by_text("As a table").click()
    expect(plane.locator("tbody tr").first).to_contain_text("known class27")
    assert plane.locator("svg circle.known").count() == 27
    assert plane.locator("svg path.contour").count() == 9
    expect(plane).to_contain_text("One deviation more of informativeness outweighs 0.42 of purity.")


def test_what_is_not_known_is_said(served, visit) -> None:
    campaign = at_the_beginning()
    page = visit(served(campaign), path="/dashboard")
    expect(page.get_by_text("not known yet")).to_have_count(4)
    expect(card(page, "What the ranking has learned")).to_contain_text("after the first round's training")
    expect(card(page, "Bought per round")).to_contain_text("Nothing has been answered yet.")
    campaign.insight = in_the_middle().insight
    assert campaign.insight is not None
    campaign.insight |= {"accuracy": unknown("No item was audited: the audit share is 0."), "landscape": None}
    page.reload()
    expect(card(page, "Accuracy")).to_contain_text("No item was audited: the audit share is 0.")
    expect(card(page, "What the ranking has learned")).to_contain_text("learns no weighing")


def test_the_owner_settles_disagreements_and_flags_by_keyboard(served, visit) -> None:
    campaign = in_the_middle()
    page = visit(served(campaign), path="/review")
    expect(page.locator(".votes li")).to_have_text(
        ["ada answered cat", "grace answered dog", "grace flagged it: half a cat?"]
    )
    page.keyboard.press("ArrowDown")
    expect(page.locator(".votes h2")).to_have_text("photo_001.png")
    page.keyboard.press("2")
    expect(page.locator(".toast")).to_have_text("Settled: dog. 1 item left.")
    vote = campaign.votes[-1]
    assert (vote.item, vote.answer, vote.view) == ("photo_001.png", known("dog"), "review")


def test_an_owner_adds_somebody_and_takes_the_link_away(served, visit) -> None:
    campaign = in_the_middle()
    page = visit(served(campaign), path="/people")
    page.get_by_label("Name").fill("linus")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Link for linus")).to_have_value("http://127.0.0.1/login?token=linus")
    expect(page.get_by_label("Link for linus")).to_be_focused()
    page.get_by_role("button", name="Revoke the link of linus").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="linus")).to_contain_text("link revoked")


def test_an_annotator_sees_no_owners_page(served, visit) -> None:
    url = served(in_the_middle())
    page = visit(url, "grace", "/people")
    expect(page.get_by_role("heading", name="This page is for the owner")).to_be_visible()
    page.goto("/dashboard")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link")).to_have_text(["Label", "Dashboard"])
