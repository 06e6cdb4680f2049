"""`mqnet paper`."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path

from mqnet.cli.coders import telling
from mqnet.cli.experiments import console, tell_failures
from mqnet.cli.progress import duration
from mqnet.cli.watching import watch
from mqnet.errors import ConfigError, InputError
from mqnet.experiment.paper.entries import entry
from mqnet.experiment.paper.estimate import Estimate, estimate
from mqnet.experiment.paper.html import write_page
from mqnet.experiment.paper.page import page, reading_of, tables_of
from mqnet.experiment.paper.pictures import draw_all, remove_old
from mqnet.experiment.paper.press import Press
from mqnet.experiment.paper.scales import Changes, scaled
from mqnet.experiment.run import Progress, n_cores
from mqnet.experiment.tables import render
from mqnet.loop.learner import SHARED
from mqnet.store.blobs import write_durably


def press(
    name: str, scale: str, data: Path | None, out: Path | None, recipes: Path, changes: Changes, jobs: int | None,
    dry_run: bool, show: bool, as_json: bool,
) -> None:  # fmt: skip
    """Say what the entry will cost, run what is missing, show the paper beside what was measured, write its page.

    `dry_run` only says the cost, `show` only writes the page of what has finished.
    """
    chosen = scaled(entry(name), scale, data, recipes, changes)
    pressed = Press(chosen, out or Path("runs") / f"paper-{scale}")
    side_by_side = jobs or n_cores()
    cells = pressed.cells()
    if not as_json:
        console.print(f"{chosen.entry.title}\n{chosen.label}", highlight=False)
    failures: list[Progress] = []
    if not show:
        _say_cost(estimate(pressed.out, cells, side_by_side), side_by_side, as_json)
        if dry_run:
            return
        with telling(pressed.out / SHARED, None if as_json else console):
            failures = watch(pressed.run(side_by_side), pressed.out, cells, console, as_json)
    results = pressed.results()
    if not results.settings:
        tell_failures(failures, pressed.out)
        raise InputError(f"no campaign of '{name}' has finished in '{pressed.out}' yet.")
    command = shlex.join(["mqnet", "paper", name, "--scale", scale, *_spoken(data, changes)])
    shown = tables_of(pressed, results)
    remove_old(pressed.place)
    write_durably(pressed.page, page(pressed, results, command, shown, draw_all(pressed, results)).encode())
    report = write_page(pressed, results, shown)
    if as_json:
        print(
            json.dumps({"tables": [asdict(table) for table in shown], "page": str(pressed.page), "report": str(report)})
        )
    else:
        width = shutil.get_terminal_size().columns
        for table in tables_of(pressed, results, elsewhere=False):
            print(render(table, "text", width=width), end="\n\n")
        print(reading_of(results).replace("**", ""))
        console.print(f"\npage:   {pressed.page}\nreport: {report}", highlight=False, soft_wrap=True)
    tell_failures(failures, pressed.out)


def _say_cost(cost: Estimate, jobs: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"cost": asdict(cost)}), flush=True)
        return
    left = cost.n_cells - cost.n_finished
    about = f", about {duration(cost.seconds)} with {jobs} at a time ({cost.how})" if left else ""
    console.print(
        "\n".join([f"{cost.n_cells} campaigns, {cost.n_finished} finished{about}.", *cost.more]), highlight=False
    )


def seeds_of(text: str) -> tuple[int, ...]:
    """Seeds as they are typed: a count, or the seeds themselves.

    >>> seeds_of("3"), seeds_of("0,4")
    ((0, 1, 2), (0, 4))
    """
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--seeds is '{text}': say how many (5), or which (0,1,7).") from error
    if "," in text:
        return numbers
    if numbers[0] < 1:
        raise ConfigError(f"--seeds is {text}: at least one is needed.")
    return tuple(range(numbers[0]))


def _spoken(data: Path | None, changes: Changes) -> list[str]:
    out = ["--data", data.name] if data is not None else []
    if changes.seeds is not None:
        out += ["--seeds", ",".join(map(str, changes.seeds))]
    for option, value in (
        ("--rounds", changes.rounds),
        ("--budget", changes.budget),
        ("--pool-size", changes.pool_size),
    ):
        if value is not None:
            out += [option, f"{value:g}"]
    return out
