"""Label Studio: `labelstudio sync` and `labelstudio serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqnet.cli.app import JsonOption, app

HOME = Path("mqnet-campaign")
Folder = Annotated[Path, typer.Argument(help="The campaign's folder.", show_default=True)]
SecretOption = Annotated[
    str | None, typer.Option("--secret-env", help="The variable that holds a secret for the backend's Basic auth.")
]
studio = typer.Typer(no_args_is_help=True, help="Label in Label Studio, in MQ-Net's order.")
app.add_typer(studio, name="labelstudio")


@studio.command()
def sync(
    project_url: Annotated[str, typer.Argument(help="The project's address, as in http://localhost:8080/projects/1.")],
    folder: Folder = HOME,
    token_env: Annotated[
        str | None, typer.Option("--token-env", help="The variable that holds Label Studio's token.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option("--token-file", help="The file that holds it.")] = None,
    image_prefix: Annotated[
        str | None,
        typer.Option("--image-prefix", help="What stands before an image's path (default: send the images)."),
    ] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="Where Label Studio reaches `mqnet labelstudio serve`: connect it.")
    ] = None,
    secret_env: SecretOption = None,
    watch: Annotated[
        float | None, typer.Option("--watch", min=1, help="Again every so many seconds, until the campaign is done.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Take Label Studio's annotations, rank the next round when one is answered, and send its tasks."""
    from mqnet.cli import labelstudio

    labelstudio.sync(project_url, folder, token_env, token_file, image_prefix, backend, secret_env, watch, json)


@studio.command()
def serve(
    folder: Folder = HOME,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port.")] = 9090,
    secret_env: SecretOption = None,
) -> None:
    """Serve the campaign as an ML backend: predictions in MQ-Net's order, webhooks for annotations."""
    from mqnet.cli import labelstudio

    labelstudio.serve(folder, host, port, secret_env)
