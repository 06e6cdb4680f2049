"""The pictures in docs/labelling-app.md: every screen of the app on a real campaign, at three widths, light and dark.

`python docs/pictures.py` (needs Chromium and the test dependencies; about two minutes) writes docs/pictures/*.png: the
phone, the laptop and the wide screen beside each other, light above dark.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from mqnet.loop.learner import ActiveLearner
from mqnet.store.campaign import CampaignStore
from mqnet.store.health import Health
from mqnet.store.items import Item
from mqnet.store.project import Project
from people import Client, Given, Robot, digits_campaign, free_port, let_in, start_all
from tools import chromium_path

HERE = Path(__file__).parent
SCREENS = {"phone": (360, 780), "laptop": (1280, 800), "wide": (1920, 1080)}
HEIGHT = 400
GAP = 12
Prepare = Callable[[Page], None]
SENTENCES = (
    "When will my new card arrive?",
    "The machine kept my card and gave no money.",
    "I was charged twice for the same ticket last Friday.",
    "Do you know a good bakery near the station?",
    "How do I change the address on my account?",
)


def digits(
    scratch: Path, name: str, kind: str = "image", n_items: int = 600, rounds: int = 6, **settings: object
) -> tuple[Given, Path]:
    """A campaign on handwritten digits, three of ten classes known, as images or with made-up questions as texts."""
    given = digits_campaign(
        scratch / f"{name}-pool", n_items, budget=24.0, rounds=rounds, cost_ood=1.0, audit_share=0.1
    )
    folder = scratch / name
    images = folder / "images"
    images.mkdir(parents=True)
    if kind == "image":
        for item, pixels in zip(given.truth.ids, np.load(given.folder / "pool.npy").reshape(-1, 8, 8), strict=True):
            large = Image.fromarray((255 * (1 - pixels)).astype(np.uint8)).resize((96, 96), Image.Resampling.BICUBIC)
            large.save(images / f"{item}.png")
    learner = given.learner if kind == "image" else {**given.learner, "classes": QUESTIONS}
    with ActiveLearner(folder=folder, **learner) as opened:
        project = Project(
            name="digits" if kind == "image" else "support questions", kind=kind,
            root="images" if kind == "image" else None, encoder=None, vectors="pool.npy", **settings,
        )  # fmt: skip
        opened.store.set_project(project)
        opened.store.add_items(
            Item(item, kind, f"{item}.png" if kind == "image" else SENTENCES[i % len(SENTENCES)])
            for i, item in enumerate(given.truth.ids)
        )
    return given, folder


QUESTIONS = (
    "card arrival", "card swallowed", "charged twice", "change of address", "exchange rate", "lost card", "new pin",
    "refund", "top up", "transfer", "verify identity", "virtual card",
)  # fmt: skip


@contextmanager
def served(folder: Path, *more: str) -> Iterator[str]:
    """The campaign behind its real server."""
    port = free_port()
    program = str(Path(sys.executable).with_name("mqnet"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [program, "label", str(folder), "--port", str(port), "--no-browser", *more]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(url, timeout=5):
                    break
            except urllib.error.URLError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def play(given: Given, folder: Path, until: Callable[[dict[str, object]], bool], *, mistakes: float = 0.0) -> None:
    """Three people answer until the campaign's state is what is wanted; the last one errs now and then."""
    truth = given.answers()
    chance, names = np.random.default_rng(0), list(given.truth.classes)
    wrong = {
        item: {"kind": "known", "name": names[int(chance.integers(len(names)))]}
        if chance.random() < mistakes
        else right
        for item, right in truth.items()
    }
    tokens = let_in(folder, "ann", "bob", "cleo")
    with served(folder) as url:
        port, over = int(url.rsplit(":", 1)[1]), threading.Event()
        robots = [
            Robot(Client(port, token), answers, seed, at_once=3)
            for seed, (token, answers) in enumerate(zip(tokens, (truth, truth, wrong), strict=True))
        ]
        threads, asking = start_all(robots, over), Client(port, tokens[0])
        while not until(state := asking.patiently("GET", "/api/state")[1]) and state["state"] != "done":
            time.sleep(0.05)
        over.set()
        for thread in threads:
            thread.join()
        time.sleep(3)  # the insight of the last round
        asking.close()


def shoot(browser: Browser, name: str, url: str, token: str, path: str, prepare: Prepare = lambda page: None) -> None:
    """One picture of one screen, at every width, light and dark."""
    rows: list[list[Image.Image]] = []
    for scheme in ("light", "dark"):
        row: list[Image.Image] = []
        for width, height in SCREENS.values():
            context = browser.new_context(
                base_url=url, viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=1
            )
            page = context.new_page()
            if token:
                page.goto(f"/login?token={token}")
                page.wait_for_url("/")
            page.goto(path)
            page.wait_for_load_state("networkidle")
            prepare(page)
            page.wait_for_timeout(400)
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            context.close()
            if "--whole" in sys.argv:  # to look at closely
                shot.save(HERE / "pictures" / f"whole-{name}-{width}-{scheme}.png")
            row.append(shot.resize((round(width * HEIGHT / height), HEIGHT), Image.Resampling.LANCZOS))
        rows.append(row)
    total = sum(shot.width for shot in rows[0]) + GAP * (len(rows[0]) + 1)
    sheet = Image.new("RGB", (total, 2 * HEIGHT + 3 * GAP), (128, 128, 128))
    for i, row in enumerate(rows):
        x = GAP
        for shot in row:
            sheet.paste(shot, (x, GAP + i * (HEIGHT + GAP)))
            x += shot.width + GAP
    sheet.quantize(200, dither=Image.Dither.NONE).save(HERE / "pictures" / f"{name}.png", optimize=True)
    print(name)


def keys(*pressed: str) -> Prepare:
    """Presses keys."""

    def prepare(page: Page) -> None:
        page.wait_for_timeout(300)
        for key in pressed:
            page.keyboard.press(key)

    return prepare


def in_the_middle(browser: Browser, scratch: Path) -> None:
    """Most screens: three people in the fourth round."""
    given, folder = digits(scratch, "digits", overlap=2)
    play(given, folder, lambda now: now["round"] >= 4 and now["progress"]["answered"] >= 5, mistakes=0.3)
    (olga,) = let_in(folder, "olga", role="owner")
    with served(folder, "--no-worker") as url:
        client = Client(int(url.rsplit(":", 1)[1]), olga)
        item = client("GET", "/api/next?n=1")[1]["items"][0]["id"]
        client("POST", "/api/flags", {"item": item, "flagged": True, "note": "could be a zero or a six"})
        client.close()
        shoot(browser, "focus-image", url, olga, "/")
        shoot(browser, "grid", url, olga, "/#grid", keys("x", "1", "ArrowRight", "x", "r"))
        shoot(browser, "keys", url, olga, "/", keys("?"))
        shoot(browser, "dashboard", url, olga, "/dashboard")
        shoot(browser, "dashboard-below", url, olga, "/dashboard", lambda page: page.mouse.wheel(0, 700))
        shoot(browser, "review", url, olga, "/review")
        shoot(browser, "people", url, olga, "/people")
        shoot(browser, "signed-out", url, "", "/")


def at_the_end(browser: Browser, scratch: Path) -> None:
    """The budget is spent."""
    given, folder = digits(scratch, "end", n_items=120, rounds=1)
    play(given, folder, lambda now: now["state"] == "done")
    (olga,) = let_in(folder, "olga", role="owner")
    with served(folder, "--no-worker") as url:
        shoot(browser, "end", url, olga, "/")


def on_texts(browser: Browser, scratch: Path) -> None:
    """Texts and twelve classes."""
    _, folder = digits(scratch, "texts", kind="text", n_items=120)
    (olga,) = let_in(folder, "olga", role="owner")
    with ActiveLearner.open(folder) as learner:
        learner.ask()
    with served(folder, "--no-worker") as url:
        shoot(browser, "focus-text", url, olga, "/")
        shoot(browser, "focus-text-filter", url, olga, "/", keys("c", "a", "r"))


def in_between(browser: Browser, scratch: Path) -> None:
    """While the loop trains, with nothing to answer meanwhile."""
    _, folder = digits(scratch, "waiting", n_items=120, early_answers=False)
    (olga,) = let_in(folder, "olga", role="owner")
    store = CampaignStore.open(folder)
    with served(folder, "--no-worker") as url:
        shoot(browser, "waiting", url, olga, "/", lambda page: _training(store, page))
    store.close()


def _training(store: CampaignStore, page: Page) -> None:
    Health(store).say("training", "the model learns from 61 labels and 35 answers 'none of these'.", 3)
    page.wait_for_timeout(2500)  # the page asks every two seconds


SCENES = (in_the_middle, at_the_end, on_texts, in_between)


def main() -> None:
    """All pictures, or those of the scenes named."""
    (HERE / "pictures").mkdir(exist_ok=True)
    wanted = [scene for scene in SCENES if scene.__name__ in sys.argv] or SCENES
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=quiet)
        for scene in wanted:
            scene(browser, Path(scratch))
        browser.close()


if __name__ == "__main__":
    main()
