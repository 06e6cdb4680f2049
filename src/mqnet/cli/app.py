"""The `mqnet` app and the options several commands share. Nothing heavy is imported here: `--help` stays fast."""

from __future__ import annotations

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

OutOption = Annotated[Path, typer.Option("--out", help="Folder for results.", show_default=True)]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, help="Processes side by side (default: one per core).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
PluginOption = Annotated[list[Path] | None, typer.Option("--plugin", help="A Python file whose plug-ins join.")]


@app.callback(invoke_without_command=True)
def _version(  # pyright: ignore[reportUnusedFunction]
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        from mqnet import __version__

        typer.echo(__version__)
        raise typer.Exit
