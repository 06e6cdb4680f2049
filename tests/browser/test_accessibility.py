"""axe-core finds no fault on any screen, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from campaigns import at_the_beginning, in_the_middle
from driving import ready
from fake_api import FakeCampaign
from playwright.sync_api import Page, expect

from tools import axe_path

pytestmark = [pytest.mark.browser, pytest.mark.axe]

SCREENS = [
    {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True, "is_mobile": True},
]
MANY = [f"class {i}" for i in range(14)]


@pytest.fixture(params=SCREENS, ids=["laptop-light", "phone-dark"])
def faultless(request: pytest.FixtureRequest, visit) -> Callable[..., Page]:
    """Opens a page on this screen; `check()` on it lists what axe-core finds wrong."""
    return lambda url, path="/": visit(url, path=path, **request.param)


def check(page: Page) -> None:
    script = axe_path()
    assert script is not None
    page.evaluate(script.read_text(encoding="utf-8") + ";0")
    found: list[dict[str, Any]] = page.evaluate("axe.run().then((result) => result.violations)")
    assert [(fault["id"], [node["html"][:200] for node in fault["nodes"]]) for fault in found] == []


def test_labelling(served, faultless) -> None:
    campaign = in_the_middle()
    page = faultless(served(campaign))
    ready(page)
    page.keyboard.press("1")
    ready(page)
    check(page)
    page.keyboard.press("ArrowLeft")
    check(page)
    page.keyboard.press("?")
    check(page)
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    check(page)
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    for key in ("x", "1", "s"):
        page.keyboard.press(key)
    check(page)


def test_labelling_texts_with_many_classes_while_the_loop_trains(served, faultless) -> None:
    texts: dict[str, str | bytes] = {f"t{i}": "a long text " * 300 for i in range(5)}
    page = faultless(served(FakeCampaign(texts, MANY, 2, 4, training=True)))
    ready(page)
    page.keyboard.type("class")
    check(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+g")
    expect(page.locator(".cell").first).to_be_visible()
    check(page)


def test_nothing_to_do(served, faultless) -> None:
    page = faultless(served(FakeCampaign({"a": "b"}, ["c"], 1, 0)))
    expect(page.get_by_role("heading", name="The budget is spent")).to_be_visible()
    check(page)


@pytest.mark.parametrize("path", ["/dashboard", "/review", "/people"])
def test_the_other_pages(served, faultless, path) -> None:
    page = faultless(served(in_the_middle()), path)
    expect(page.locator(".card, .votes h2").first).to_be_visible()
    for details in page.get_by_text("As a table").all():
        details.click()
    check(page)


def test_an_empty_dashboard(served, faultless) -> None:
    page = faultless(served(at_the_beginning()), "/dashboard")
    expect(page.locator(".card").first).to_be_visible()
    check(page)
