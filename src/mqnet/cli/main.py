"""The `mqnet` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="mqnet",
    help="Open-set active learning: spend a labelling budget well on a pool that contains junk.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

OutOption = Annotated[Path, typer.Option("--out", help="Folder for results.", show_default=True)]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Processes side by side (default: one per core).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


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
    plugin: Annotated[list[Path] | None, typer.Option("--plugin", help="A Python file whose plug-ins join.")] = None,
) -> None:
    """Run an experiment; the same command continues it where it stopped."""
    from mqnet.cli import experiments

    experiments.run(config, out, jobs, json, plugin or [])


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="The folder of a run.")]) -> None:
    """Write a self-contained report.html about a run."""
    from mqnet.experiment.report import write_report

    typer.echo(str(write_report(folder)))


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="The folder of a run or a campaign.")], json: JsonOption = False
) -> None:
    """Say how far a run or a campaign is."""
    from mqnet.cli import experiments

    experiments.status(folder, json)


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
def bench(
    items: Annotated[list[int] | None, typer.Option("--items", min=10, help="Pool sizes; may be repeated.")] = None,
    classes: Annotated[list[int] | None, typer.Option("--classes", min=1, help="Numbers of classes.")] = None,
    strategy: Annotated[list[str] | None, typer.Option("--strategy", help="Which strategies (default: all).")] = None,
    picks: Annotated[int, typer.Option("--picks", min=1, help="How many items to rank.")] = 500,
    out: Annotated[Path | None, typer.Option("--out", help="Keep the figures in this JSON file.")] = None,
) -> None:
    """Measure how long every strategy takes to rank a pool on this machine."""
    from mqnet.cli import bench as benchmarking

    benchmarking.run(items or (), classes or (), strategy or (), picks, out)


@app.command(name="list")
def list_(
    json: JsonOption = False,
    plugin: Annotated[list[Path] | None, typer.Option("--plugin", help="A Python file whose plug-ins join.")] = None,
) -> None:
    """Show every score, strategy, model and data set, with what each needs."""
    from mqnet.cli import catalogue

    catalogue.show(json, plugin or [])


@app.callback(invoke_without_command=True)
def _version(  # pyright: ignore[reportUnusedFunction]
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        from mqnet import __version__

        typer.echo(__version__)
        raise typer.Exit


def run_app() -> int:
    """Run the command line and return its exit code, never a traceback.

    2 is for what its user can put right (input, a plug-in, the disk, another loop), 1 for a fault in mqnet.
    """
    from mqnet.errors import MqnetError

    # threads that wait by spinning slow each other down where cores are shared; to be set before torch loads
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        app()
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            print("stopped; the same command continues where it stopped", file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else 1
    except MqnetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except Exception as error:
        if os.environ.get("MQNET_DEBUG"):
            raise
        print(
            f"error: {type(error).__name__}: {error}\nThis is a fault in mqnet, not in what you gave it. "
            "Set MQNET_DEBUG=1 for a traceback to report.",
            file=sys.stderr,
        )
        return 1
    return 0


def run_main() -> None:
    """The entry point."""
    sys.exit(run_app())
