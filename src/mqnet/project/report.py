"""One self-contained HTML page about a campaign with people: what was bought, what it came to, how sure that is."""

from __future__ import annotations

import base64
import io
import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mqnet import __version__
from mqnet.data.sources import image_file
from mqnet.errors import ConfigError, InputError, MqnetError
from mqnet.experiment.figures.landscape import score_landscape
from mqnet.experiment.figures.look import KNOWN_COLOUR, OOD_COLOUR
from mqnet.experiment.figures.sheet import svg
from mqnet.experiment.report import STYLE
from mqnet.loop.explain import explain
from mqnet.loop.insight import keep_insight
from mqnet.loop.learner import ActiveLearner
from mqnet.models.encode import CHUNK
from mqnet.project.folder import opened, root_of
from mqnet.project.predict import Predictor, predictor
from mqnet.server.annotations import NONE_OF_THESE
from mqnet.store.blobs import write_durably
from mqnet.store.campaign import CampaignStore
from mqnet.store.codec import to_json
from mqnet.store.health import Health
from mqnet.store.imported import IMPORTED
from mqnet.store.items import IMAGE, Item
from mqnet.store.overview import Dashboard, Overview
from mqnet.store.project import Project
from mqnet.types import CampaignConfig

THUMBNAIL = 128
SHOWN_TEXT = 240
MORE_STYLE = f"""
.bar {{ display: flex; height: 1.1rem; min-width: 12rem; background: var(--line); border-radius: 3px;
  overflow: hidden; }}
.bar span {{ display: block; }}
.known {{ background: {KNOWN_COLOUR}; }} .ood {{ background: {OOD_COLOUR}; }} .skipped {{ background: #9aa3ad; }}
.key span {{ display: inline-block; width: .9em; height: .9em; border-radius: 2px; margin: 0 .35em 0 1em; }}
.items {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .8rem; padding: 0; }}
.items li {{ list-style: none; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .6rem; font-size: .85rem; overflow-wrap: anywhere; }}
.items img {{ display: block; max-width: 100%; height: {THUMBNAIL}px; object-fit: contain; margin: 0 auto .4rem;
  image-rendering: auto; }}
"""
ESTIMATES = {
    "accuracy": "accuracy on known items",
    "ood_share": "share of junk in the pool",
    "known_left": "known items left in the pool",
    "saved": "saved against random labelling",
}
COUNTS = ("known_left",)


def write_report(folder: Path) -> Path:
    """Write `FOLDER/report.html` from what is there now, also while people and a worker are at it; return its path."""
    with opened(folder) as (store, settings), ActiveLearner.open(folder, looking=True) as learner:
        keep_insight(learner)  # where no worker did
        page = render(store, settings, learner, root_of(folder, settings))
    path = folder / "report.html"
    write_durably(path, page.encode())
    return path


def render(store: CampaignStore, settings: Project, learner: ActiveLearner, root: Path | None) -> str:
    """The page as text."""
    config, seen = store.config(), Overview(store).dashboard()
    insight = Health(store).insight()
    found = _predictor(learner)
    imported = sum(line.annotator == IMPORTED for line in store.ledger())
    parts = [
        f"<h1>{escape(settings.name)}</h1>",
        f'<p class="soft">{escape(_setting(settings, config, len(learner.pool.ids)))}</p>',
        f'<p class="verdict">{escape(verdict(seen, config, insight, imported))}</p>',
        "<h2>What was bought</h2>",
        _rounds(seen),
        "<h2>What it is worth</h2>",
        _estimates(insight),
        *_landscape(learner),
        "<h2>The classes</h2>",
        _classes(seen, learner, found),
        "<h2>The people</h2>",
        _people(seen),
        *_wanted(insight, store, root),
        "<h2>What to be careful about</h2>",
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in _cautions(config, insight, found, imported)) + "</ul>",
        "<h2>Configuration</h2>",
        f"<pre>{escape(json.dumps(json.loads(to_json(config)), indent=2, ensure_ascii=False))}</pre>",
        f'<p class="soft">{escape(_versions(settings))}</p>',
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>mqnet report: {escape(settings.name)}</title><style>{STYLE}{MORE_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def verdict(seen: Dashboard, config: CampaignConfig, insight: Mapping[str, Any] | None, imported: int) -> str:
    """The campaign in a few sentences."""
    n_known, n_ood = (sum(getattr(r, name) for r in seen.rounds) for name in ("n_known", "n_ood"))
    total = "" if seen.total_budget is None else f" of {seen.total_budget:g}"
    bought = n_known + n_ood - imported
    out = [f"{bought} labels were bought for {seen.spent:g}{total} {_unit(config)}."]
    if imported:
        out.append(f"{imported} more were there before and cost nothing.")
    if n_known + n_ood:
        out.append(f"{n_known} name a class, {n_ood} ({n_ood / (n_known + n_ood):.0%}) are {NONE_OF_THESE}.")
    accuracy = (insight or {}).get("accuracy") or {}
    if accuracy.get("value") is not None:
        out.append(f"The model is right on an estimated {_range(accuracy, percent=True)} of known items.")
    stopping = ((insight or {}).get("stopping") or {}).get("text")
    return " ".join([*out, str(stopping)] if stopping else out)


def _setting(settings: Project, config: CampaignConfig, n_items: int) -> str:
    by = f", by {settings.encoder}" if settings.encoder else ""
    budget = f"rounds of {config.budget.round:g} {_unit(config)}"
    return (
        f"{n_items} {settings.kind}s{by}; classes {', '.join(config.classes)}; {budget}; a label costs "
        f"{config.costs.known:g} (known) or {config.costs.ood:g} ({NONE_OF_THESE}); strategy {config.strategy.name}."
    )


def _unit(config: CampaignConfig) -> str:
    return "minutes" if config.budget.unit == "minutes" else "units of budget"


def _rounds(seen: Dashboard) -> str:
    most = max((r.n_known + r.n_ood + r.n_skipped for r in seen.rounds), default=0) or 1
    key = "".join(
        f'<span class="{name}"></span>{text}'
        for name, text in (("known", "known"), ("ood", NONE_OF_THESE), ("skipped", "skipped"))
    )
    rows: list[str] = []
    for r in seen.rounds:
        counts = {"known": r.n_known, "ood": r.n_ood, "skipped": r.n_skipped}
        label = f"{r.n_known} known, {r.n_ood} {NONE_OF_THESE}, {r.n_skipped} skipped"
        bar = "".join(f'<span class="{name}" style="width:{n / most:.2%}"></span>' for name, n in counts.items() if n)
        cells = (r.round, r.n_known, r.n_ood, r.n_skipped, f"{r.spent:g}", f"{r.budget:g}")
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr>{row}<td><div class="bar" role="img" aria-label="{label}">{bar}</div></td></tr>')
    head = ("round", "known", NONE_OF_THESE, "skipped", "spent", "budget", "")
    note = "Round 0 is the first sample, or the labels that were imported."
    return f'<p class="soft key">{key}</p>{_table(head, rows)}<p class="soft">{note}</p>'


def _estimates(insight: Mapping[str, Any] | None) -> str:
    rows: list[str] = []
    for name, title in ESTIMATES.items():
        found = (insight or {}).get(name) or {}
        if found.get("value") is not None:
            value = _range(found, percent=name not in (*COUNTS, "saved"))
            cells = (title, value, str(found.get("n", "")), str(found.get("how", "")))
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    if not rows:
        return (
            '<p class="soft">No estimates yet: they rest on items drawn uniformly at random, a share of every round '
            "(the audit), and are made when a worker closes a round.</p>"
        )
    return _table(("estimate", "value (95% interval)", "items", "how"), rows)


def _range(found: Mapping[str, Any], *, percent: bool) -> str:
    def shown(value: float) -> str:
        return f"{value:.0%}" if percent else f"{value:.0f}"

    value, low, high = (found.get(name) for name in ("value", "low", "high"))
    assert value is not None
    return shown(value) if low is None or high is None else f"{shown(value)} ({shown(low)} to {shown(high)})"


def _landscape(learner: ActiveLearner) -> list[str]:
    """The figure of the last round with answers; nothing where there is none, or the strategy has none."""
    rounds = [line.round for line in learner.ledger]
    try:
        explained = explain(learner, max(rounds, default=0))
    except (ConfigError, InputError):
        return []
    caption = explained.sentence()
    drawing = svg(score_landscape(explained)).replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    return [
        "<h2>Purity against informativeness</h2>",
        f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>",
    ]


def _predictor(learner: ActiveLearner) -> Predictor | None:
    try:
        return predictor(learner)
    except InputError:
        return None  # no answer names a class yet


def _classes(seen: Dashboard, learner: ActiveLearner, found: Predictor | None) -> str:
    predicted: Counter[str] = Counter()
    if found is not None:
        names = (*found.classes, NONE_OF_THESE)
        for _, some in learner.pool.ids.chunks(CHUNK):
            batch = found.predict(learner.pool.load(some))
            for name, n in zip(names, batch.counts(len(found.classes)), strict=True):
                predicted[name] += n
    n_ood = sum(r.n_ood for r in seen.rounds)
    rows = [
        f"<tr><td>{escape(name)}</td><td>{n}</td><td>{predicted[name] if found else '-'}</td></tr>"
        for name, n in ({**seen.class_counts, NONE_OF_THESE: n_ood}).items()
    ]
    table = _table(("class", "labelled", "predicted in the pool"), rows)
    if found is None:
        return table
    text = f"Items are predicted as {NONE_OF_THESE} above {found.sorter.threshold:.3f}: {found.sorter.how}."
    return f'{table}<p class="soft">{escape(text)}</p>'


def _people(seen: Dashboard) -> str:
    rows = [
        "<tr>"
        + "".join(
            f"<td>{escape(cell)}</td>"
            for cell in (one.name, str(one.n), _seconds(one.median_seconds), _share(one.agreement))
        )
        + "</tr>"
        for one in seen.annotators
    ]
    if not rows:
        return '<p class="soft">Nobody has answered yet.</p>'
    times = "; ".join(f"{kind}: {_seconds(t.median)} (of {t.n})" for kind, t in seen.seconds.items() if t.n)
    note = f'<p class="soft">Median time of an answer: {escape(times)}.</p>' if times else ""
    return _table(("who", "answers", "median time", "agreement"), rows) + note


def _wanted(insight: Mapping[str, Any] | None, store: CampaignStore, root: Path | None) -> list[str]:
    out: list[str] = []
    for name, title in (("most_wanted", "Most wanted next"), ("least_wanted", "Least wanted")):
        entries: Sequence[Mapping[str, Any]] = (insight or {}).get(name) or ()
        items = store.items([str(entry["item"]) for entry in entries])
        cards = [
            f"<li>{_shown(items[entry['item']], root)}<b>{escape(str(entry['item']))}</b><br>"
            f"{escape(str(entry.get('reason', '')))}</li>"
            for entry in entries
            if entry["item"] in items
        ]
        if cards:
            out += [f"<h2>{title}</h2>", f'<ul class="items">{"".join(cards)}</ul>']
    return out


def _shown(item: Item, root: Path | None) -> str:
    if item.kind == IMAGE and root is not None:
        picture = thumbnail(root, item.ref)
        return "" if picture is None else f'<img alt="" src="{picture}">'
    text = item.ref if len(item.ref) <= SHOWN_TEXT else item.ref[:SHOWN_TEXT] + "…"
    return f"<p>{escape(text)}</p>" if text else ""


def thumbnail(root: Path, ref: str) -> str | None:
    """A small PNG of an image of the pool as a data URI; None where the file is gone or is no image."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(image_file(root, ref)) as image:
            small = image.convert("RGB")
            small.thumbnail((THUMBNAIL, THUMBNAIL))
    except (OSError, UnidentifiedImageError, MqnetError):
        return None
    content = io.BytesIO()
    small.save(content, "PNG")
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


def _cautions(
    config: CampaignConfig, insight: Mapping[str, Any] | None, found: Predictor | None, imported: int
) -> Iterable[str]:
    if config.audit_share == 0:
        yield "Without an audit share nothing here is an unbiased estimate: labels were chosen, not drawn at random."
    elif insight is not None:
        yield "Estimates rest on the audit sample alone, which is small: look at the intervals, not at the values."
    yield "Predictions of the pool count what the model believes; it was trained on items the strategy chose."
    if imported:
        yield f"{imported} labels were imported: who gave them, and how items were chosen, this page cannot know."
    if found is not None and found.sorter.head is None:
        yield f"Nothing was answered {NONE_OF_THESE} yet: no item can be told from junk."


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _versions(settings: Project) -> str:
    names = ("torch", "numpy", "scikit-learn")
    made = f"mqnet {__version__}, Python {platform.python_version()}, "
    return (
        made
        + ", ".join(f"{n} {version(n)}" for n in names)
        + (f"; encoder {settings.encoder}" * bool(settings.encoder))
    )
