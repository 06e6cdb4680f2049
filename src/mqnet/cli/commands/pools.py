"""Pools before a campaign: `doctor`, `embed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqnet.cli.app import JsonOption, PluginOption, app

PoolArgument = Annotated[
    Path, typer.Argument(help="A folder of images, a table of texts (CSV, TSV, JSONL, Parquet), or vectors.")
]
TextColumnOption = Annotated[str | None, typer.Option("--text-column", help="The column that holds the texts.")]
IdColumnOption = Annotated[str | None, typer.Option("--id-column", help="The column that names the items.")]


@app.command()
def doctor(
    pool: PoolArgument,
    text_column: TextColumnOption = None,
    id_column: IdColumnOption = None,
    label_column: Annotated[
        str | None, typer.Option("--label-column", help="A column of labels: its balance is shown.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="The encoder whose time is estimated (default: the best installed).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Look at every item of a pool and list what must be mended before anything is trained."""
    from mqnet.cli import pools

    pools.doctor(pool, text_column, id_column, label_column, encoder, json)


@app.command()
def embed(
    pool: PoolArgument,
    out: Annotated[Path, typer.Option("--out", help="The pool of vectors to write: .parquet or .npy.")],
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", help="By name (`mqnet list`), or KIND:MODEL (default: the best installed)."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="An option of the encoder, as name=value; may be repeated.")
    ] = None,
    text_column: TextColumnOption = None,
    id_column: IdColumnOption = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out images that cannot be read, and name them.")
    ] = False,
    json: JsonOption = False,
    plugin: PluginOption = None,
) -> None:
    """Turn images or texts into a pool of vectors; the same command continues it where it stopped."""
    from mqnet.cli import pools

    pools.embed_pool(pool, out, encoder, option or [], text_column, id_column, skip_unreadable, json, plugin or [])
