"""`mqnet labelstudio sync` and `serve`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from mqnet.cli.projects import sentence
from mqnet.errors import ConfigError, InputError


def sync(
    project_url: str,
    folder: Path,
    token_env: str | None,
    token_file: Path | None,
    image_prefix: str | None,
    backend: str | None,
    secret_env: str | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """One pass, or one after the other until the campaign is done."""
    from mqnet.project.labelstudio import Client, sync

    client = Client(project_url, _token(token_env, token_file))
    while True:
        done = sync(folder, client, image_prefix=image_prefix, backend=backend, secret=_variable(secret_env))
        if as_json:
            print(json.dumps(done.record(), ensure_ascii=False), flush=True)
        else:
            counts = f"{done.given} answers in, {done.withdrawn} taken back, {done.created} tasks out"
            print(f"{counts}; {done.model_version}. {sentence(done.progress)}", flush=True)
            for refused in done.refused:
                print(f"not taken: {refused}", flush=True)
            if done.standing:
                print(f"{done.standing} deleted annotations stand: their rounds are closed.", flush=True)
        if watch is None or done.progress.state == "done":
            return
        time.sleep(watch)


def serve(folder: Path, host: str, port: int, secret_env: str | None) -> None:
    """Serve the ML backend until somebody stops it."""
    try:
        import uvicorn

        from mqnet.server.labelstudio import create_backend
        from mqnet.server.serve import bind, is_loopback
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("fastapi", "uvicorn"):
            raise
        raise ConfigError("serving needs more packages: pip install 'mqnet[label]'.") from error
    secret = _variable(secret_env)
    if secret is None and not is_loopback(host):
        raise ConfigError(
            f"'{host}' can be reached from other machines, and whoever reaches it could answer. Give --secret-env "
            "NAME, a variable with a secret for Label Studio to send."
        )
    app = create_backend(folder, secret)
    sock = bind(host, port)
    print(f"ML backend at http://{host}:{sock.getsockname()[1]}. Ctrl-C stops.", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    try:
        uvicorn.Server(config).run(sockets=[sock])
    finally:
        sock.close()


def _token(variable: str | None, file: Path | None) -> str:
    if (variable is None) == (file is None):
        raise ConfigError("say where Label Studio's token is: --token-env NAME or --token-file FILE.")
    if variable is not None:
        return _variable(variable) or ""
    assert file is not None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the token file '{file}' cannot be read.") from error


def _variable(name: str | None) -> str | None:
    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"the variable {name} is not set, or empty.")
    return value
