"""`mqnet label`, `work` and `people`."""

from __future__ import annotations

import json
import socket
import sys
import webbrowser
from pathlib import Path

from mqnet.errors import ConfigError
from mqnet.store.campaign import CampaignStore
from mqnet.store.people import People, User

NEEDED = ("fastapi", "uvicorn", "PIL")


def label(folder: Path, host: str, port: int | None, browser: bool, worker: bool) -> None:
    """Serve the campaign's pages and run its loop beside them."""
    try:
        from mqnet.server.child import Child
        from mqnet.server.serve import bind, is_loopback, owner_token, serve
    except ImportError as error:
        if (error.name or "").split(".")[0] not in NEEDED:
            raise
        raise ConfigError("labelling in the browser needs more packages: pip install 'mqnet[label]'.") from error
    token = owner_token(folder)
    if not is_loopback(host):
        print(
            f"WARNING: '{host}' can be reached from other machines. Nothing is encrypted: whoever listens on the way "
            "can read the items and the links people come in by. Put a proxy that speaks HTTPS in front, or stay in a "
            "network you trust.",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    sock = bind(host, port)
    link = f"{_address(sock, host)}/login?token={token}"
    child = Child(folder, lambda words: print(words, file=sys.stderr, flush=True)) if worker else None

    def ready() -> None:
        print(f"Label at {link}\nThis link is the owner's: `mqnet people` makes one for each helper. Ctrl-C stops.",
              flush=True)  # fmt: skip
        if browser:
            webbrowser.open(link)

    try:
        serve(folder, sock, ready)
    finally:
        sock.close()
        if child is not None:
            child.close()


def _address(sock: socket.socket, host: str) -> str:
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{sock.getsockname()[1]}"


def work(folder: Path) -> None:
    """Run the loop until the campaign is over."""
    from mqnet.loop.worker import run

    print("The loop is at work. It ends when there is nothing left to ask; Ctrl-C stops it.", flush=True)
    run(folder)
    print("The campaign is over.")


def people(folder: Path, add: list[str], role: str, revoke: list[str], url: str, as_json: bool) -> None:
    """Let people in or out, then list them."""
    store = CampaignStore.open(folder)
    try:
        book = People(store)
        links = {name: f"{url.rstrip('/')}/login?token={book.add(name, role)}" for name in add}
        for name in revoke:
            book.revoke(name)
        everybody = book.everybody()
    finally:
        store.close()
    if as_json:
        print(json.dumps([_row(user, links.get(user.name)) for user in everybody]))
        return
    for user in everybody:
        print(f"{user.name}: {user.role}{', revoked' if user.revoked else ''}")
        if user.name in links:
            print(f"  their link, shown this once: {links[user.name]}")
    if not everybody:
        print("nobody yet: `mqnet label` lets the owner in, --add NAME a helper.")


def _row(user: User, link: str | None) -> dict[str, object]:
    return {"name": user.name, "role": user.role, "revoked": user.revoked, "link": link}
