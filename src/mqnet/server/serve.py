"""Serving a campaign: an address, the owner's link, the app until somebody stops it."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn

from mqnet.errors import ConfigError
from mqnet.server.app import create_app
from mqnet.store.blobs import write_durably
from mqnet.store.campaign import CampaignStore
from mqnet.store.people import OWNER, People

PORT = 8765
N_PORTS = 20
TOKEN_FILE = "owner.token"
NAME_OF_OWNER = "owner"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int | None) -> socket.socket:
    """A socket on this port; without one, on the first free one from 8765 on."""
    ports = range(PORT, PORT + N_PORTS) if port is None else [port]
    for candidate in ports:
        try:
            family = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0][0]
        except OSError as error:
            raise ConfigError(f"'{host}' is no address of this machine: {error.strerror or error}.") from error
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, candidate))
            return sock
        except OSError as error:
            sock.close()
            if port is not None:
                raise ConfigError(f"port {port} of '{host}' cannot be used: {error.strerror or error}.") from error
    raise ConfigError(f"ports {ports[0]} to {ports[-1]} are all taken. Choose one with --port.")


def owner_token(folder: Path) -> str:
    """The owner's token of a campaign, made when there is none.

    It lies in the campaign's folder, readable by its owner alone: whoever can read that can read everything anyway,
    and the same link works after a restart. The database knows only its hash.
    """
    path = folder / TOKEN_FILE
    store = CampaignStore.open(folder)
    try:
        people = People(store)
        token = path.read_text().strip() if path.is_file() else ""
        user = people.known_by(token) if token else None
        if user is None or user.role != OWNER:
            token = secrets.token_urlsafe(32)
            people.keep(NAME_OF_OWNER, OWNER, token)
            write_durably(path, token.encode(), mode=0o600)
        return token
    finally:
        store.close()


def serve(folder: Path, sock: socket.socket, ready: Callable[[], None]) -> None:
    """Serve the campaign of a folder on this socket until the process is told to stop; `ready` is called when it is."""
    config = uvicorn.Config(
        create_app(folder), log_level="warning", access_log=False, server_header=False, lifespan="on", ws="none",
        timeout_keep_alive=30, timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = uvicorn.Server(config)

    def wait() -> None:
        while not server.started and not server.should_exit:
            time.sleep(0.02)
        if server.started:
            ready()

    threading.Thread(target=wait, daemon=True).start()
    server.run(sockets=[sock])
