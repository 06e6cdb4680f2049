"""One self-contained HTML page about a grid: the verdict, the figures, the tables, the configuration, the cautions."""

from __future__ import annotations

import platform
from html import escape
from importlib.metadata import version
from pathlib import Path

from mqnet import __version__
from mqnet.errors import InputError
from mqnet.experiment import figures
from mqnet.experiment.config import ExperimentConfig
from mqnet.experiment.results import Results
from mqnet.experiment.stored import stored_config, stored_results
from mqnet.experiment.summary import Table, comparisons, favourite_of, gaps, tables, verdict
from mqnet.store.blobs import write_durably

STYLE = """
:root { color-scheme: light; --ink: #1d2129; --soft: #5b6472; --line: #e3e6ea; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: #f6f7f9; margin: 0; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
.verdict { font-size: 1.15rem; background: #fff; border-left: 4px solid #D55E00; padding: 1rem 1.2rem;
  margin: 1.2rem 0; }
figure { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: .8rem; margin: 0 0 1rem; }
figure svg { width: 100%; height: auto; max-width: 100%; }
figcaption, .soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; background: #fff; border: 1px solid var(--line); border-radius: 8px; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .7rem .8rem .2rem; }
th, td { text-align: right; padding: .4rem .8rem; border-top: 1px solid var(--line); white-space: nowrap; }
th { vertical-align: bottom; white-space: normal; font-weight: 600; }
th:first-child, td:first-child, td.name { text-align: left; }
tr.ruled td { border-top: 2px solid var(--soft); }
th[colspan] { text-align: center; }
pre { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: .8rem; overflow-x: auto;
  font-size: .8rem; }
"""


def write_report(out: Path) -> Path:
    """Write `OUT/report.html` from what has finished so far, and return its path."""
    config = stored_config(out)
    results = stored_results(out)
    if not results.settings:
        raise InputError(f"no cell of '{out}' has finished yet.")
    path = out / "report.html"
    write_durably(path, render(config, results).encode())
    return path


def render(config: ExperimentConfig, results: Results) -> str:
    """The page as text."""
    favourite = favourite_of(results.strategies)
    parts = [
        f"<h1>Open-set active learning: {escape(config.scenario.label)}</h1>",
        f'<p class="soft">{escape(_setting(config))}</p>',
        f'<p class="verdict">{escape(verdict(results, favourite))}</p>',
        "<h2>Accuracy for what was spent</h2>",
        _figure(
            figures.accuracy_against_cost(results),
            "Mean test accuracy over seeds; bands: one standard deviation. Every strategy starts from the same labels.",
        ),
        "<h2>What the queries held</h2>",
        *(
            _figure(
                figures.query_composition(results, scenario, share),
                f"Known and OOD items in each round's query, mean over seeds ({scenario}, {share:.0%} OOD).",
            )
            for scenario, share in results.settings
        ),
        "<h2>Labels wasted on junk</h2>",
        _figure(
            figures.wasted_labels(results), "OOD labels bought by the queries so far, the initial sample left out."
        ),
        "<h2>In numbers</h2>",
        *(_table(table) for table in (*tables(results), *gaps(results), *comparisons(results, favourite))),
        f'<p class="soft">{escape(LEGEND)}</p>',
        "<h2>What to be careful about</h2>",
        "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in _cautions(config, results)) + "</ul>",
        "<h2>Configuration</h2>",
        f"<pre>{escape(config.model_dump_json(indent=2, exclude_none=True))}</pre>",
        f'<p class="soft">{escape(_versions())}</p>',
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>mqnet report: {escape(config.scenario.label)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


LEGEND = (
    "Final accuracy: mean and standard deviation over seeds, in percent. AULC: mean accuracy over rounds 2 to the "
    "last. AULC-cost: area under accuracy against cost. Over random: paired difference in AULC with its 95% interval "
    "over seeds. Oracle gap closed: the share of the gap between random choice and perfect purity, with a bootstrap "
    "interval. Spent on OOD: cost of junk in the queries before the last."
)


def _setting(config: ExperimentConfig) -> str:
    c = config.campaign
    costs = f"a label costs {c.cost_known:g} (known) or {c.cost_ood:g} (OOD)"
    return f"{c.rounds} rounds of budget {c.budget:g}; {costs}; {len(config.grid.seeds)} seeds."


def _cautions(config: ExperimentConfig, results: Results) -> list[str]:
    out = ["Known classes are drawn anew for every seed, and draws differ: compare paired differences, not bands."]
    n_seeds = len(config.grid.seeds)
    if n_seeds < 10:
        out.append(f"{n_seeds} seeds leave wide intervals; a difference whose interval holds zero may be chance.")
    if config.scenario.dataset == "embeddings":
        out.append("Vectors come from a pre-trained encoder: results say nothing about training from scratch.")
    if config.scenario.dataset == "digits":
        out.append("Digits are a small, easy data set: good for a first look, not for ranking strategies.")
    if config.campaign.confuses_known or config.campaign.misses_ood:
        out.append("The annotator makes mistakes here; accuracy is still measured against the truth.")
    if "oracle-purity" in results.strategies:
        out.append("oracle-purity sees the truth. It is a reference line, not a strategy anyone can use.")
    return out


def _versions() -> str:
    names = ("torch", "numpy", "scikit-learn")
    return f"mqnet {__version__}, Python {platform.python_version()}, " + ", ".join(f"{n} {version(n)}" for n in names)


def _figure(svg: str, caption: str) -> str:
    labelled = svg.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}"', 1)
    return f"<figure>{labelled}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    spans = ""
    if table.spans:
        heads = "".join(f'<th scope="colgroup" colspan="{n}">{escape(text)}</th>' for text, n in table.spans)
        spans = f'<tr><td colspan="{table.n_names}"></td>{heads}</tr>'
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    body = "".join(_table_row(table, r) for r in range(len(table.rows)))
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="scroll"><table><caption>{escape(table.title)}</caption>'
        f"<thead>{spans}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _table_row(table: Table, r: int) -> str:
    cells: list[str] = []
    for c, text in enumerate((*table.shown_names(r), *table.rows[r][table.n_names :])):
        tag = "b" if (r, c) in table.best else "u" if (r, c) in table.second else ""
        shown = f"<{tag}>{escape(text)}</{tag}>" if tag else escape(text)
        cells.append(f'<td class="name">{shown}</td>' if c < table.n_names else f"<td>{shown}</td>")
    return ('<tr class="ruled">' if r in table.rules else "<tr>") + "".join(cells) + "</tr>"
