"""Tests here drive the app in Chromium, on a small fake of its contract or on the real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from fake_api import FakeCampaign, serving
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tools import chromium_path

QUIET = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
)
PATIENCE = 40_000
"""Milliseconds until something that should be on the page counts as missing; a busy machine is no fault."""

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET.split())
        yield launched
        launched.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Open]:
    """Opens a page of the app as somebody: `visit(url, "ada", "/dashboard")`. Faults in the console fail the test."""
    faults: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            faults.append(message.text)

    with ExitStack() as stack:

        def opened(url: str, token: str = "ada", path: str = "/", **settings: object) -> Page:
            context = stack.enter_context(chromium.new_context(base_url=url, **settings))  # type: ignore[arg-type]
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("console", heard)
            page.on("request", lambda r: r.url.startswith((url, "blob:", "data:")) or faults.append(f"asked {r.url}"))
            page.goto(f"/login?token={token}")
            page.wait_for_url("/")
            if path != "/":
                page.goto(path)
            return page

        yield opened
    assert faults == []


@pytest.fixture
def served() -> Iterator[Callable[[FakeCampaign], str]]:
    """Serves a fake campaign until the test ends: its address."""
    with ExitStack() as stack:
        yield lambda campaign: stack.enter_context(serving(campaign))
