"""Labelling by people: `label`, `work`, `people`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqnet.cli.app import JsonOption, app

Campaign = Annotated[Path, typer.Argument(help="The campaign's folder.", metavar="[DIR]")]
HERE = Path("mqnet-campaign")


@app.command()
def label(
    dir: Campaign = HERE,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port (default: the first free one from 8765 on).")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Serve only; `mqnet work` runs the loop.")] = False,
) -> None:
    """Label in the browser while the loop learns."""
    from mqnet.cli import serving

    serving.label(dir, host, port, not no_browser, not no_worker)


@app.command()
def work(dir: Campaign = HERE) -> None:
    """Run a campaign's loop: train when a round is answered, ask again, until nothing is left to ask."""
    from mqnet.cli import serving

    serving.work(dir)


@app.command()
def people(
    dir: Campaign = HERE,
    add: Annotated[list[str] | None, typer.Option("--add", help="Let this person in; prints their link.")] = None,
    role: Annotated[str, typer.Option("--role", help="annotator or owner: what those added may do.")] = "annotator",
    revoke: Annotated[list[str] | None, typer.Option("--revoke", help="Let this person in no longer.")] = None,
    url: Annotated[str, typer.Option("--url", help="Where people reach the server.")] = "http://127.0.0.1:8765",
    json: JsonOption = False,
) -> None:
    """List who may label, let somebody in or out."""
    from mqnet.cli import serving

    serving.people(dir, add or [], role, revoke or [], url, json)
