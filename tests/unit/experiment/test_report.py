"""The report of a grid: one file that needs nothing else, whatever things are called, and says what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from mqnet.experiment.cells import grid
from mqnet.experiment.config import CampaignSection, ExperimentConfig, GridSection, ScenarioSection
from mqnet.experiment.finished import Standing
from mqnet.experiment.report import POLICY, Subject, cautions, render
from mqnet.experiment.results import Results, Row
from mqnet.experiment.simulate import RoundResult
from mqnet.experiment.tables.shape import Table

HOSTILE = '<img src=x onerror="alert(1)">'
FETCHING = {"script", "link", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}


class Page(HTMLParser):
    """Every tag with its attributes, and whether tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "img", "input"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def subject(*strategies: str, seeds: int = 3, **changes: object) -> Subject:
    config = ExperimentConfig(
        scenario=ScenarioSection(dataset="digits", name=f"digits {HOSTILE}", known_classes=4, pool_size=150),
        campaign=CampaignSection(rounds=3, budget=10),
        grid=GridSection(strategies=tuple({"name": "random", "label": name} for name in strategies), seeds=(0, 1, 2)),
    )
    rows = [
        Row(
            config.scenario.label, name, 0.4, seed,
            RoundResult(r + 1, 0.5 + 0.1 * r + 0.01 * seed * (i + 1), 10.0 * (r + 1), 6, 4, 0.6, 0.8, 0.5, 1, 1, 1, 1),
            "cell",
        )
        for i, name in enumerate(strategies) for seed in range(seeds) for r in range(3)
    ]  # fmt: skip
    cells = grid(config)
    return replace(Subject(config, cells, Results(rows), Standing(len(cells), len(cells), ())), **changes)


def test_the_page_fetches_nothing_and_shows_names_as_text() -> None:
    about = subject("random", HOSTILE, heading=f"about {HOSTILE}", label=HOSTILE, first=[
        Table(HOSTILE, (HOSTILE, "x"), ((HOSTILE, HOSTILE),), (HOSTILE,))
    ])  # fmt: skip
    text = render(about)
    page = Page(text)
    assert not FETCHING & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        for name in ("src", "href", "xlink:href", "style", "poster", "action"):
            value = attributes.get(name) or ""
            assert "//" not in value or value.startswith("data:"), (tag, attributes)
            assert name not in ("src", "poster", "action") or not value, (tag, attributes)
    assert not re.search(r"url\(\s*['\"]?(?!#)", text)
    assert "@import" not in text
    assert HOSTILE not in text
    assert {"http-equiv": "Content-Security-Policy", "content": POLICY} in [a for tag, a in page.tags if tag == "meta"]
    # every figure says in words what it shows
    assert all(attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg")


def test_it_says_what_was_run_and_with_what() -> None:
    about = subject("random", "mqnet")
    text = render(about)
    assert "3 rounds of budget 10" in text
    assert "<dd>0, 1, 2</dd>" in text
    assert "6 of 6" in text
    assert re.search(r"<dd>[0-9a-f]{20} \(a hash of all campaigns", text)
    for name in ("mqnet ", "Python ", "torch ", "numpy ", "scikit-learn ", "matplotlib "):
        assert name in text
    assert "For the same 30 spent, mqnet ends at" in text
    # the hash is of what defines the campaigns
    digest = re.compile(r"<dd>([0-9a-f]{20}) ")
    other = replace(about, cells=[replace(cell, digest="0" * 20) for cell in about.cells])
    assert digest.search(render(other))[1] != digest.search(text)[1]
    assert digest.search(render(subject("random", "mqnet")))[1] == digest.search(text)[1]


def test_what_failed_or_is_missing_is_told_first() -> None:
    standing = Standing(6, 3, (("random · digits · 40% OOD · seed 1", f"the disk is full {HOSTILE}"),))
    assert standing.n_missing == 2
    text = render(subject("random", "mqnet", standing=standing))
    assert "3 of 6 campaigns have finished, 1 failed." in text
    assert "random · digits · 40% OOD · seed 1: the disk is full &lt;img" in text
    assert "Not every campaign has finished" in text
    assert "campaigns have finished" not in render(subject("random", "mqnet"))


def test_cautions_follow_from_the_run() -> None:
    def said(about: Subject) -> str:
        return " ".join(cautions(about))

    assert "3 seeds leave wide intervals" in said(subject("random", "mqnet"))
    assert "One seed says nothing about chance" in said(subject("random", seeds=1))
    assert "sees which items are junk" in said(subject("random", "oracle-purity"))
    assert "sees which items are junk" not in said(subject("random"))
    assert "small, easy data set" in said(subject("random"))
    assert "one in twenty" in said(subject("a", "b", "c", "d"))
    assert "one in twenty" not in said(subject("a", "b"))

    def changed(**scenario: object) -> Subject:
        about = subject("random")
        section = about.config.scenario.model_copy(update=scenario)
        return replace(about, config=about.config.model_copy(update={"scenario": section}))

    assert "pre-trained encoder" in said(changed(dataset="embeddings"))
    assert "pre-trained encoder" not in said(subject("random"))
    assert "draws its own known classes" not in said(changed(kind="cross"))
    about = subject("random")
    free = GridSection(strategies=({"name": "mqnet", "validation": "random"},), seeds=(0,))
    assert "for nothing" in said(replace(about, config=about.config.model_copy(update={"grid": free})))
