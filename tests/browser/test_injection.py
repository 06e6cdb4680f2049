"""Markup and script in texts, file names, class names, notes and the campaign's name: shown as they are, never run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import press, ready, saved
from PIL import Image
from playwright.sync_api import Page, expect
from real import Served, rows

from mqnet.data.pools import ArrayPool
from mqnet.loop.learner import ActiveLearner
from mqnet.store.items import Item
from mqnet.store.project import Project
from people import let_in
from processes import Zygote

pytestmark = pytest.mark.browser
SCRIPT = "<script>window.ran = 1</script>"
IMAGE = '<img src=x onerror="window.ran = 1">'
LINK = "javascript:window.ran=1//\"'><svg onload=window.ran=1>"
CLASSES = (SCRIPT, IMAGE, "{{ran}} & <b>bold</b> \u202eright to left")
NAME = f"{IMAGE} <b>campaign</b>"


@pytest.fixture(scope="module")
def mqnet(tmp_path_factory: pytest.TempPathFactory):
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.close()


def campaign(folder: Path, kind: str) -> list[str]:
    """Four items with nasty names or texts; their names."""
    names = [f"{text.replace('/', '∕')}.png" for text in (SCRIPT, IMAGE, LINK, "a?b#c%2e é")]
    refs = names if kind == "image" else [SCRIPT, IMAGE, LINK, f"<a href='{LINK}'>click</a>\n" * 40]
    images = folder / "images"
    images.mkdir(parents=True)
    for name in names if kind == "image" else []:
        Image.new("RGB", (30, 30), (90, 140, 90)).save(images / name)
    pool = ArrayPool(np.eye(4, dtype=np.float32), names)
    with ActiveLearner(pool, CLASSES, budget=4.0, rounds=2, strategy="random", folder=folder) as learner:
        learner.store.set_project(
            Project(NAME, kind, "images" if kind == "image" else None, None, "pool.npy", early_answers=False)
        )
        learner.store.add_items(Item(name, kind, ref) for name, ref in zip(names, refs, strict=True))
        learner.ask()
    return names


def harmless(page: Page) -> None:
    """Nothing ran, and nothing of it became an element."""
    assert page.evaluate("window.ran") is None
    assert page.locator("script:not([src]), [onerror], [onload], svg[onload], a[href^=javascript]").count() == 0
    assert page.locator("main b, header b").count() == 0


@pytest.mark.parametrize("kind", ["image", "text"])
def test_what_people_bring_is_shown_and_never_run(mqnet: Zygote, visit, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "people"
    names = campaign(folder, kind)
    (token,) = let_in(folder, "olga", role="owner")
    with Served(mqnet, folder, worker=False) as server:
        page = visit(server.url, token)
        ready(page)
        expect(page.locator("header .project")).to_have_text(NAME)
        for name in CLASSES:
            expect(page.get_by_role("button", name=name)).to_be_visible()
        for key in ("1", "2", "x"):
            harmless(page)
            press(page, key)
        saved(page)
        page.keyboard.press("f")
        page.get_by_role("textbox").fill(IMAGE)
        page.keyboard.press("Enter")
        expect(page.locator("dialog.flag")).to_have_count(0)
        page.keyboard.press("g")
        expect(page.locator(".cell")).to_have_count(1)
        harmless(page)
        for path in ("/review", "/dashboard", "/people"):
            page.goto(path)
            expect(page.get_by_role("heading").first).to_be_visible()
            page.wait_for_load_state("networkidle")
            harmless(page)
        expect(page.locator("body")).to_contain_text("olga")
    assert {name for (name,) in rows(folder, "SELECT item FROM answers")} < set(names)
    assert rows(folder, "SELECT note FROM flags") == [(IMAGE,)]
