"""`mqnet demo`, `run` and `status`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table as RichTable

from mqnet.cli.coders import said, telling
from mqnet.cli.watching import best_of, status_lines, watch
from mqnet.errors import InputError, MqnetError
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.config import ExperimentConfig, load_config
from mqnet.experiment.cost import run_cost
from mqnet.experiment.demo import demo_config
from mqnet.experiment.report import write_report
from mqnet.experiment.run import Progress, collect, n_cores, run_experiment, unfinished
from mqnet.experiment.standing import standing
from mqnet.experiment.stored import CONFIG, RESULTS, stored_config, stored_results
from mqnet.experiment.summary import Table, compact, favourite_of, tables, verdict
from mqnet.loop.coders import in_training
from mqnet.loop.learner import SHARED
from mqnet.store.campaign import DATABASE, CampaignStore
from mqnet.store.ledger import n_known, n_ood

console = Console(markup=False)  # texts come from configurations: their brackets are not markup


def demo(out: Path, jobs: int | None, as_json: bool) -> None:
    """Run the demo, print its table and verdict, name the report."""
    _run_and_show(demo_config(), out, jobs, as_json)


def run(
    path: Path, out: Path, jobs: int | None, as_json: bool, plugins: Sequence[Path], data: Path | None = None
) -> None:
    """Run an experiment and print its tables."""
    config = load_config(path, data)
    added = (*config.plugins, *(plugin.resolve() for plugin in plugins))
    _run_and_show(config.model_copy(update={"plugins": added}), out, jobs, as_json)


def status(folder: Path, as_json: bool) -> None:
    """Print how far a run or a campaign is."""
    found = _run_status(folder) if (folder / CONFIG).is_file() else _campaign_status(folder)
    if as_json:
        print(json.dumps(found))
        return
    for line in status_lines(found) if "cells" in found else _plain(found):
        console.print(line, highlight=False, soft_wrap=True)


def _plain(found: Mapping[str, object]) -> list[str]:
    return [f"{name.replace('_', ' ')}: {value}" for name, value in found.items()]


def _run_status(folder: Path) -> dict[str, object]:
    cells = grid(stored_config(folder))
    found = standing(folder, cells, collect(folder, cells), time.time())
    training = [said(progress) for progress in in_training(folder / SHARED)]
    return {
        "cells": found.total,
        "finished": found.done,
        "failed": found.failed,
        "running": [{"cell": one.cell.title, "round": one.round, "of": one.rounds} for one in found.running],
        **({"training": training} if training else {}),
        "seconds_left": found.seconds_left,
        "best": best_of(found),
    }


def _campaign_status(folder: Path) -> dict[str, object]:
    if not (folder / DATABASE).is_file():
        raise InputError(f"'{folder}' holds neither a run nor a campaign.")
    store = CampaignStore.open(folder)
    try:
        lines, rounds, query = store.ledger(), store.rounds(), store.offered()
        return {
            "round": rounds[-1].round if rounds else 0,
            "spent": store.spent,
            "known": n_known(lines),
            "ood": n_ood(lines),
            "skipped": len(lines) - n_known(lines) - n_ood(lines),
            "open": len(query.items) if query else 0,
        }
    finally:
        store.close()


def _run_and_show(config: ExperimentConfig, out: Path, jobs: int | None, as_json: bool) -> None:
    cells = grid(config)
    _say_cost(cells, out, jobs, as_json)
    with telling(out / SHARED, None if as_json else console):
        failures = watch(run_experiment(config, out, jobs=jobs, cells=cells), out, cells, console, as_json)
    results = stored_results(out)
    if results.settings:
        report = write_report(out)
        sentence = verdict(results, favourite_of(results.strategies))
        if as_json:
            found = [asdict(table) for table in tables(results)]
            summary = {"verdict": sentence, "tables": found, "report": str(report)}
            print(json.dumps({**summary, "results": str(out / RESULTS)}))
        else:
            for table in compact(results):
                _print_table(table)
            console.print(sentence, style="bold", highlight=False)
            console.print(f"\nresults: {out / RESULTS}\nreport:  {report}", highlight=False, soft_wrap=True)
    tell_failures(failures, out)


def tell_failures(failures: Sequence[Progress], out: Path) -> None:
    """Say how many campaigns failed, and leave with the exit code that says so; nothing if none did."""
    if failures:
        first = failures[0]
        print(
            f"error: {len(failures)} of {first.total} campaigns failed; each has an error.txt under {out / 'cells'}. "
            f"The first was {first.cell.title}: {first.error}",
            file=sys.stderr,
        )
        raise typer.Exit(2 if all(isinstance(done.error, MqnetError) for done in failures) else 1)


def _say_cost(cells: Sequence[Cell], out: Path, jobs: int | None, as_json: bool) -> None:
    """Before a run on images: what it will train, and how long that will take on this machine."""
    cost = run_cost(out, unfinished(out, cells), jobs or n_cores())
    if cost is None:
        return
    if as_json:
        print(json.dumps({"cost": {**asdict(cost), "seconds": round(cost.seconds)}}), flush=True)
    else:
        console.print("\n".join(cost.lines), highlight=False, soft_wrap=True)


def _print_table(table: Table) -> None:
    shown = RichTable(title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for i, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if i == 0 else "right", no_wrap=i == 0, overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
    for note in table.notes:
        console.print(note, highlight=False)
    console.print()
