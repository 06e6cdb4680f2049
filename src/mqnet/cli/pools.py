"""`mqnet doctor` and `mqnet embed`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console

from mqnet.cli.progress import Told, duration
from mqnet.data.doctor import FEW, Report, examine
from mqnet.data.sources import open_source
from mqnet.encoders.embed import embed, embedding_seconds
from mqnet.errors import ConfigError
from mqnet.registry import load_plugin

SHOWN = 20
"""Items named of each sort of fault; `--json` names all."""

console = Console(markup=False, highlight=False, soft_wrap=True)


def doctor(
    path: Path,
    text_column: str | None,
    id_column: str | None,
    label_column: str | None,
    encoder: str | None,
    as_json: bool,
) -> None:
    """Examine a pool, print the findings, and leave with 2 if something must be mended."""
    source = open_source(path, text_column=text_column, id_column=id_column, label_column=label_column)
    with Told(f"looking at {source.kind}s") as told:
        report = examine(source, told)
    estimate = None
    if source.kind != "vector" and report.n_faulty < report.n_items:
        bad = {item for items in report.faults.values() for item in items}
        estimate = embedding_seconds(source, encoder, without=bad)
    if as_json:
        record = asdict(report) | {"path": str(path), "faulty": report.n_faulty}
        if estimate is not None:
            record["embedding"] = {"encoder": estimate[0], "seconds": round(estimate[1], 1)}
        print(json.dumps(record))
    else:
        _print(report)
        if estimate is not None:
            console.print(f"embedding with '{estimate[0]}' would take about {duration(estimate[1])} on this machine")
    if report.n_faulty:
        raise typer.Exit(2)


def _print(report: Report) -> None:
    console.print(f"{report.n_items:,} {report.kind}s in {report.path}")
    for note in report.notes:
        console.print(f"  {note}")
    for fault, items in report.faults.items():
        console.print(f"\n{fault}: {len(items):,}", style="bold red")
        for sentence in list(items.values())[:SHOWN]:
            console.print(f"  {sentence}")
        if len(items) > SHOWN:
            console.print(f"  … and {len(items) - SHOWN:,} more (--json names all)")
    for title, groups in (("the same content twice", report.duplicates), ("nearly the same", report.nearly)):
        if groups:
            extra = sum(len(group) - 1 for group in groups)
            console.print(f"\n{title}: {extra:,} items could go", style="bold yellow")
            for group in groups[:SHOWN]:
                console.print(f"  {' = '.join(group[:5])}{' = …' if len(group) > 5 else ''}")
            if len(groups) > SHOWN:
                console.print(f"  … and {len(groups) - SHOWN:,} more groups (--json names all)")
    if report.oddities:
        found = ", ".join(f"{n:,} {what}" for what, n in report.oddities.items())
        console.print(f"\nhandled as they should be: {found}")
    _print_classes(report)
    console.print(
        f"\n{report.n_faulty:,} items must be mended or removed." if report.n_faulty else "\nnothing must be mended.",
        style="bold",
    )


def _print_classes(report: Report) -> None:
    if report.classes:
        counts = sorted(report.classes.items(), key=lambda pair: (-pair[1], pair[0]))
        console.print(f"\n{len(counts)} classes, {counts[-1][1]:,} to {counts[0][1]:,} items each")
        shown = counts if len(counts) <= SHOWN else [*counts[: SHOWN // 2], *counts[-SHOWN // 2 :]]
        for name, n in shown:
            console.print(f"  {n:>8,}  {name}{'   (few)' if n < FEW else ''}")
        if len(counts) > SHOWN:
            console.print(f"  the {len(counts) - SHOWN:,} classes between these are left out (--json names all)")
    if report.unlabelled:
        console.print(f"{report.unlabelled:,} items have no label")
    for name in report.empty_classes:
        console.print(f"the folder '{name}' holds no image", style="yellow")


def embed_pool(
    path: Path,
    out: Path,
    encoder: str | None,
    options: Sequence[str],
    text_column: str | None,
    id_column: str | None,
    skip_unreadable: bool,
    as_json: bool,
    plugins: Sequence[Path],
) -> None:
    """Embed a pool and say what was written."""
    for plugin in plugins:
        load_plugin(plugin)
    source = open_source(path, text_column=text_column, id_column=id_column)
    with Told("embedding") as told:
        done = embed(
            source, out, encoder=encoder, options=_options(options), skip_unreadable=skip_unreadable, watch=told
        )
    if as_json:
        print(json.dumps(asdict(done) | {"path": str(done.path)}))
        return
    if done.advice:
        console.print(done.advice)
    for sentence in done.left_out.values():
        console.print(f"left out: {sentence}", style="yellow")
    console.print(f"{done.n_items:,} items as {done.dim} numbers each by '{done.encoder}': {done.path}")


def _options(given: Sequence[str]) -> dict[str, object]:
    out: dict[str, object] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name:
            raise ConfigError(f"--option '{text}' must be name=value.")
        try:
            out[name] = json.loads(value)
        except json.JSONDecodeError:
            out[name] = value  # a word is a word without quotes
    return out
