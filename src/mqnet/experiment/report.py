"""One self-contained HTML page about a grid: the verdict, the figures, the tables, the configuration, the cautions."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path

from mqnet import __version__
from mqnet.errors import InputError
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.config import ExperimentConfig
from mqnet.experiment.contests import contests, reading, setting_name
from mqnet.experiment.figures.kinds import CAPTIONS, OF_RESULTS
from mqnet.experiment.figures.landscape import landscapes
from mqnet.experiment.figures.queries import query_composition
from mqnet.experiment.figures.sheet import svg
from mqnet.experiment.finished import Standing, standing
from mqnet.experiment.results import Results
from mqnet.experiment.stored import stored_config, stored_results
from mqnet.experiment.summary import RANDOM, Table, comparisons, favourite_of, gaps, tables, verdict
from mqnet.experiment.tangents import has_mqnet, landscape_rows
from mqnet.store.blobs import write_durably

STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5b6472; --line: #e3e6ea; --card: #fff; --ground: #f6f7f9;
  --mark: #D55E00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a6adb8; --line: #363c45; --card: #1f242b;
  --ground: #15181d; --mark: #f0863a; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 0; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
a { color: inherit; }
.verdict { font-size: 1.15rem; background: var(--card); border-left: 4px solid var(--mark); padding: 1rem 1.2rem;
  margin: 1.2rem 0; }
.label { border: 1px solid var(--mark); border-radius: 8px; padding: .6rem .9rem; margin: .8rem 0; font-size: .92rem; }
figure { background: #fff; color: #1d2129; border: 1px solid var(--line); border-radius: 8px; padding: .8rem;
  margin: 0 0 1rem; }
figure .wide { overflow-x: auto; }
figure svg { width: 100%; height: auto; max-width: 100%; display: block; margin: 0 auto; }
figure .wide svg { min-width: 40rem; }
figcaption { color: #5b6472; font-size: .9rem; margin-top: .4rem; }
.soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .7rem .8rem .2rem; }
caption span { display: inline-block; position: sticky; left: .8rem; max-width: min(100%, calc(100vw - 3.5rem)); }
th, td { text-align: right; padding: .4rem .8rem; border-top: 1px solid var(--line); white-space: nowrap; }
th { vertical-align: bottom; white-space: normal; font-weight: 600; min-width: 4.5rem; }
th:first-child, td:first-child, td.name { text-align: left; }
tr.ruled td { border-top: 2px solid var(--soft); }
th[colspan] { text-align: center; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--card); }
td:first-child { white-space: normal; min-width: 7rem; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .8rem; overflow-x: auto;
  font-size: .8rem; }
code, dd { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; }
@media (max-width: 36rem) { main { padding: 1.2rem .7rem 3rem; } .verdict { font-size: 1.05rem; padding: .8rem .9rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; } }
@media print { body { background: #fff; } figure, .scroll { break-inside: avoid; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LEGEND = (
    "Final accuracy: mean and standard deviation over seeds, in percent. AULC: mean accuracy over rounds 2 to the "
    "last. AULC-cost: area under accuracy against cost. Over random: paired difference in AULC with its 95% interval "
    "over seeds. Oracle gap closed: the share of the gap between random choice and perfect purity, with a bootstrap "
    "interval. Spent on OOD: cost of junk in the queries before the last."
)
FEW_SEEDS = 10
SECTIONS = (
    ("Accuracy for what was spent", ("accuracy", "accuracy-cost")),
    ("What the queries held", ("known-share", "precision-accuracy", "wasted")),
    ("What it took", ("time-memory",)),
)


@dataclass(frozen=True)
class Subject:
    """What a report is about: the configuration, its campaigns' cells, their results, and how far they are.

    `heading` and `label` stand on top, `first` are tables that come before the usual ones, `landscape` an SVG of the
    score where mqnet ran.
    """

    config: ExperimentConfig
    cells: Sequence[Cell]
    results: Results
    standing: Standing
    heading: str = ""
    label: str = ""
    first: Sequence[Table] = ()
    landscape: str = ""


def write_report(out: Path, *, landscape: bool = False) -> Path:
    """Write `OUT/report.html` from what has finished so far, and return its path.

    `landscape` computes rounds of mqnet again to draw its score: seconds on a small pool, a minute on a large one.
    """
    config = stored_config(out)
    results = stored_results(out)
    if not results.settings:
        raise InputError(f"no cell of '{out}' has finished yet.")
    cells = grid(config)
    path = out / "report.html"
    drawing = svg(landscapes(landscape_rows(out, cells))) if landscape and has_mqnet(out, cells) else ""
    subject = Subject(config, cells, results, standing(out, cells), landscape=drawing)
    write_durably(path, render(subject).encode())
    return path


def render(subject: Subject) -> str:
    """The page as text."""
    config, results = subject.config, subject.results
    favourite = favourite_of(results.strategies)
    heading = subject.heading or f"Open-set active learning: {config.scenario.label}"
    parts = [
        f"<h1>{escape(heading)}</h1>",
        f'<p class="soft">{escape(_setting(config, results))}</p>',
        *([f'<p class="label">{escape(subject.label)}</p>'] if subject.label else []),
        f'<p class="verdict">{escape(_verdict(results, favourite))}</p>',
        *_unfinished(subject.standing),
        *(_table(table) for table in subject.first),
        *_figures(results),
        *(
            ["<h2>What the score prefers</h2>", _figure(subject.landscape, CAPTIONS["landscape"])]
            if subject.landscape
            else []
        ),
        "<h2>In numbers</h2>",
        *(_table(table) for table in (*tables(results), *gaps(results), *comparisons(results, favourite))),
        f'<p class="soft">{escape(LEGEND)}</p>',
        "<h2>What to be careful about</h2>",
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in cautions(subject)) + "</ul>",
        "<h2>How it was made</h2>",
        _facts(subject),
        f"<pre>{escape(config.model_dump_json(indent=2, exclude_none=True))}</pre>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>mqnet report: {escape(heading)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _verdict(results: Results, favourite: str) -> str:
    """A sentence about the first setting where the favourite ran beside random, and one about all of several."""
    said = verdict(results, favourite)
    if len(results.settings) < 2:
        return said
    first = next(
        (s for s in results.settings if results.paired(*s, favourite, RANDOM) is not None), results.settings[0]
    )
    over_all = reading(contests(results, favourite), favourite).replace("**", "")
    return f"{setting_name(results, *first)}: {said[0].lower()}{said[1:]} {over_all}"


def cautions(subject: Subject) -> list[str]:
    """What a reader must know before believing the page."""
    config, results, c = subject.config, subject.results, subject.config.campaign
    out: list[str] = []
    seeds = [
        len(curves.seeds)
        for scenario, share in results.settings
        for strategy in results.strategies
        if (curves := results.get(scenario, share, strategy)) is not None
    ]
    if min(seeds) < FEW_SEEDS:
        few = "One seed says nothing about chance" if min(seeds) == 1 else f"{min(seeds)} seeds leave wide intervals"
        out.append(f"{few}; a difference whose interval holds zero may be chance.")
    if min(seeds) < max(seeds):
        out.append("Some strategies have fewer seeds than others: only differences over the seeds they share are fair.")
    if config.scenario.kind == "split":
        out.append(
            "Known classes are drawn anew for every seed, and draws differ: compare paired differences, not bands."
        )
    if len(results.strategies) > 3:
        out.append("Intervals are for one comparison each. Among many, one in twenty leaves zero out by chance alone.")
    if config.scenario.dataset == "embeddings":
        out.append(
            "Vectors come from a pre-trained encoder, the target model is a small head on them: results say nothing "
            "about training from scratch. If the encoder saw the junk's classes when it was trained, purity is easier "
            "than it would be elsewhere."
        )
    if config.scenario.dataset == "digits":
        out.append("Digits are a small, easy data set: good for a first look, not for ranking strategies.")
    if c.confuses_known or c.misses_ood:
        out.append("The annotator makes mistakes here; accuracy is still measured against the truth.")
    if "oracle-purity" in results.strategies:
        out.append(
            "oracle-purity sees which items are junk and ranks the rest by confidence. It is a reference line, not a "
            "strategy anyone can use, and no upper bound: what is closed of its gap can exceed 1."
        )
    if any(
        "random" in str(choice.get("validation", "")) for choice in config.grid.strategies if isinstance(choice, dict)
    ):
        out.append("validation = 'random' gets its validation labels outside the pool and for nothing.")
    out.append("The pool, its test items and the costs are simulated: a real campaign also pays for people's mistakes.")
    if subject.standing.n_missing or subject.standing.failed:
        out.append("Not every campaign has finished: means are over those that have.")
    return out


def _figures(results: Results) -> list[str]:
    out: list[str] = []
    for heading, kinds in SECTIONS:
        out.append(f"<h2>{heading}</h2>")
        out += [_figure(svg(OF_RESULTS[kind](results)), CAPTIONS[kind]) for kind in kinds]
        if "known-share" in kinds and len(results.settings) == 1:
            scenario, share = results.settings[0]
            caption = "Known and OOD items in each round's query, mean over seeds."
            out.append(_figure(svg(query_composition(results, scenario, share)), caption))
    return out


def _unfinished(found: Standing) -> list[str]:
    if not found.failed and not found.n_missing:
        return []
    missing = f"{found.n_finished} of {found.n_cells} campaigns have finished"
    more = f", {len(found.failed)} failed" if found.failed else ""
    out = [f'<p class="label">{missing}{more}. The page shows what is there.</p>']
    if found.failed:
        items = "".join(f"<li>{escape(title)}: {escape(reason)}</li>" for title, reason in found.failed)
        out.append(f"<details><summary>Failed campaigns</summary><ul>{items}</ul></details>")
    return out


def _facts(subject: Subject) -> str:
    config = subject.config
    names = ("torch", "numpy", "scikit-learn", "matplotlib")
    digest = hashlib.blake2b(" ".join(sorted(cell.digest for cell in subject.cells)).encode(), digest_size=10)
    facts = {
        "experiment": f"{digest.hexdigest()} (a hash of all campaigns: data, configuration, plug-ins and version)",
        "campaigns": f"{subject.standing.n_finished} of {subject.standing.n_cells}",
        "seeds": ", ".join(map(str, config.grid.seeds)),
        "written by": f"mqnet {__version__}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in names),
    }
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items()) + "</dl>"


def _setting(config: ExperimentConfig, results: Results) -> str:
    c = config.campaign
    of_junk = ", ".join(f"{cost:g}" for cost in sorted(results.costs))
    costs = f"a label costs {c.cost_known:g} (known) or {of_junk} (OOD)"
    n_seeds = len(config.grid.seeds)
    return f"{c.rounds} rounds of budget {c.budget:g}; {costs}; {n_seeds} seed{'s' if n_seeds != 1 else ''}."


def _figure(drawing: str, caption: str) -> str:
    labelled = drawing.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    return f'<figure><div class="wide">{labelled}</div><figcaption>{escape(caption)}</figcaption></figure>'


def _table(table: Table) -> str:
    spans = ""
    if table.spans:
        heads = "".join(f'<th scope="colgroup" colspan="{n}">{escape(text)}</th>' for text, n in table.spans)
        spans = f'<tr><td colspan="{table.n_names}"></td>{heads}</tr>'
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    body = "".join(_table_row(table, r) for r in range(len(table.rows)))
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="scroll"><table><caption><span>{escape(table.title)}</span></caption>'
        f"<thead>{spans}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _table_row(table: Table, r: int) -> str:
    cells: list[str] = []
    for c, text in enumerate((*table.shown_names(r), *table.rows[r][table.n_names :])):
        tag = "b" if (r, c) in table.best else "u" if (r, c) in table.second else ""
        shown = f"<{tag}>{escape(text)}</{tag}>" if tag else escape(text)
        cells.append(f'<td class="name">{shown}</td>' if c < table.n_names else f"<td>{shown}</td>")
    return ('<tr class="ruled">' if r in table.rules else "<tr>") + "".join(cells) + "</tr>"
