"""Experiments: `demo`, `run`, `report`, `status`, `table`, `explain`, `bench`, `list`."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated, Literal

import typer

from mqnet.cli.app import JobsOption, JsonOption, OutOption, PluginOption, app

HOME = Path("mqnet-campaign")


@app.command()
def demo(out: OutOption = Path("demo"), jobs: JobsOption = None, json: JsonOption = False) -> None:
    """Compare strategies on a small built-in data set, offline, in under a minute."""
    from mqnet.cli import experiments

    experiments.demo(out, jobs, json)


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="The experiment: a TOML file.")],
    out: OutOption,
    jobs: JobsOption = None,
    json: JsonOption = False,
    plugin: PluginOption = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Where the data named in the file lie (default: beside the file).")
    ] = None,
) -> None:
    """Run an experiment; the same command continues it where it stopped."""
    from mqnet.cli import experiments

    experiments.run(config, out, jobs, json, plugin or [], data)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a run or a campaign.", show_default=True)] = HOME,
    json: JsonOption = False,
) -> None:
    """Write a self-contained report.html about a run or a campaign."""
    from mqnet.project.folder import is_project

    if is_project(folder):
        from mqnet.project.report import write_report as about_campaign

        path = str(about_campaign(folder))
    else:
        from mqnet.experiment.report import write_report as about_run

        path = str(about_run(folder, landscape=True))
    typer.echo(dumps({"report": path}) if json else path)


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="The folder of a run or a campaign.", show_default=True)] = HOME,
    json: JsonOption = False,
) -> None:
    """Say how far a run or a campaign is."""
    from mqnet.project.folder import is_project

    if is_project(folder):
        from mqnet.cli import projects

        projects.status(folder, json)
        return
    from mqnet.cli import experiments

    experiments.status(folder, json)


@app.command()
def table(
    folder: Annotated[Path | None, typer.Argument(help="The folder of a run.")] = None,
    kind: Annotated[str, typer.Option("--kind", help="Which table; --kinds lists them.")] = "final",
    form: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    out: Annotated[Path | None, typer.Option("--out", help="Write it to this file.")] = None,
    target: Annotated[float | None, typer.Option("--target", help="cost-to-target: an accuracy, such as 0.85.")] = None,
    favourite: Annotated[
        str | None, typer.Option("--favourite", help="final, paired: the strategy it speaks of (default: mqnet).")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="paired, ranking: aulc (default), final or aulc-cost.")
    ] = None,
    test: Annotated[str | None, typer.Option("--test", help="paired: t (default) or wilcoxon.")] = None,
    every: Annotated[int | None, typer.Option("--every", min=1, help="Tables over rounds: each N-th round.")] = None,
    strategy: Annotated[list[str] | None, typer.Option("--strategy", help="Only this; may be repeated.")] = None,
    scenario: Annotated[list[str] | None, typer.Option("--scenario", help="Only this; may be repeated.")] = None,
    share: Annotated[list[float] | None, typer.Option("--share", help="Only this OOD share; may be repeated.")] = None,
    cost: Annotated[list[float] | None, typer.Option("--cost", help="Only this OOD cost; may be repeated.")] = None,
    plugin: PluginOption = None,
    kinds: Annotated[bool, typer.Option("--kinds", help="List the kinds of tables.")] = False,
) -> None:
    """Print a table of a run: as text, Markdown, LaTeX or CSV."""
    from mqnet.cli import tables
    from mqnet.errors import ConfigError

    if kinds:
        typer.echo(tables.kinds())
        return
    if folder is None:
        raise ConfigError("name the folder of a run: mqnet table FOLDER --kind KIND.")
    named = {"target": target, "favourite": favourite, "metric": metric, "test": test, "every": every}
    options = {name: value for name, value in named.items() if value is not None}
    tables.show(folder, kind, form, out, options, strategy or (), scenario or (), share or (), cost or (), plugin or ())


@app.command()
def explain(
    folder: Annotated[Path, typer.Argument(help="The folder of a campaign, of a run, or of one of its cells.")],
    round_: Annotated[int, typer.Option("--round", min=1, help="The round to explain.")],
    item: Annotated[str | None, typer.Option("--item", help="Say why this item was or was not asked.")] = None,
    cell: Annotated[
        str | None, typer.Option("--cell", help="Which cell of a run (default: the first of mqnet).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--figure", help="Where to write the picture (SVG).")] = None,
    json: JsonOption = False,
) -> None:
    """Say why a round of an MQ-Net campaign asked what it asked, with a picture."""
    from mqnet.cli import explain as explaining

    explaining.show(folder, round_, item, cell, out, json)


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Which figure; may be repeated.")] = None,
    form: Annotated[str, typer.Option("--format", help="png, svg or pdf.")] = "png",
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the files (default: FOLDER/figures).")] = None,
    json: JsonOption = False,
) -> None:
    """Draw a run's figures in a paper's style, a file per kind."""
    from mqnet.cli import figures as drawing

    drawing.show(folder, kind or (), form, out, json)


@app.command()
def paper(
    name: Annotated[str, typer.Argument(help="table1, figure1, figure3, figure4, meta-input, ... (docs/paper.md).")],
    scale: Annotated[str, typer.Option("--scale", help="embeddings, laptop or paper.")] = "embeddings",
    data: Annotated[Path | None, typer.Option("--data", help="The folder of the data.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for results (default: runs/paper-SCALE).")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="How many (5), or which (0,1,7).")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Other than the entry's.")] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Per round, other than the scale's.")] = None,
    pool_size: Annotated[int | None, typer.Option("--pool-size", min=1, help="Other than the scale's.")] = None,
    recipes: Annotated[Path, typer.Option("--recipes", help="Folder of the image recipes.")] = Path("recipes"),
    jobs: JobsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it will cost.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Run nothing: only show what has finished.")] = False,
    json: JsonOption = False,
) -> None:
    """Make one of the paper's tables or figures: its cost first, the paper beside what was measured at the end."""
    from mqnet.cli import paper as pressing
    from mqnet.experiment.paper.scales import Changes

    changes = Changes(pressing.seeds_of(seeds) if seeds is not None else None, rounds, budget, pool_size)
    pressing.press(name, scale, data, out, recipes, changes, jobs, dry_run, show, json)


@app.command()
def bench(
    items: Annotated[list[int] | None, typer.Option("--items", min=10, help="Pool sizes; may be repeated.")] = None,
    classes: Annotated[list[int] | None, typer.Option("--classes", min=1, help="Numbers of classes.")] = None,
    strategy: Annotated[list[str] | None, typer.Option("--strategy", help="Which strategies (default: all).")] = None,
    picks: Annotated[int, typer.Option("--picks", min=1, help="How many items to rank.")] = 500,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs of each; the fastest counts.")] = 1,
    clock: Annotated[Literal["wall", "processor"], typer.Option("--clock", help="What is counted.")] = "wall",
    out: Annotated[Path | None, typer.Option("--out", help="Keep the figures in this JSON file.")] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="Compare with the figures in this file.")] = None,
    tolerance: Annotated[float, typer.Option("--tolerance", min=1, help="How much slower is a regression.")] = 1.5,
) -> None:
    """Measure how long every strategy takes to rank a pool on this machine; say what became slower."""
    from mqnet.cli import bench as benchmarking

    benchmarking.run(items or (), classes or (), strategy or (), picks, repeat, clock, out, baseline, tolerance)


@app.command(name="list")
def list_(
    json: JsonOption = False,
    plugin: PluginOption = None,
) -> None:
    """Show every score, strategy, model and data set, with what each needs."""
    from mqnet.cli import catalogue

    catalogue.show(json, plugin or [])
