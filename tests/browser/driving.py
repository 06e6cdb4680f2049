"""What a person sees and does, in few words, and a pool of pictures to do it on."""

from __future__ import annotations

import io
import random

from PIL import Image
from playwright.sync_api import Locator, Page, expect


def shown(page: Page) -> str:
    """The name of the item in front."""
    return (page.locator(".caption").text_content() or "").split(" · ")[0]


def ready(page: Page) -> None:
    """Waits until the item in front can be answered."""
    expect(page.locator(".choice").first).to_have_attribute("aria-disabled", "false")


def press(page: Page, key: str) -> str:
    """Presses a key on the item in front, waits until another one, or none, has its place: the item's name."""
    ready(page)
    item = shown(page)
    page.keyboard.press(key)
    expect(page.locator(".caption")).not_to_contain_text(item)
    return item


def saved(page: Page) -> None:
    """Waits until the server has confirmed everything."""
    expect(saving(page)).to_have_text("saved")


def saving(page: Page) -> Locator:
    """Where the page says whether answers are saved."""
    return page.locator(".saving")


def known(name: str) -> dict[str, str]:
    """The answer that an item belongs to a class."""
    return {"kind": "known", "name": name}


NONE = {"kind": "ood"}
SKIP = {"kind": "skip"}


def picture(number: int, size: int = 40) -> bytes:
    """A PNG of one colour of its own."""
    shade = random.Random(number).randbytes(3)
    out = io.BytesIO()
    Image.new("RGB", (size, size), (shade[0], shade[1], shade[2])).save(out, "PNG")
    return out.getvalue()


def pictures(n: int) -> dict[str, str | bytes]:
    """A pool of n images."""
    return {f"photo_{i:03d}.png": picture(i) for i in range(n)}
