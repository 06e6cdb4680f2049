"""The `mqnet` command."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys

from mqnet.cli import commands
from mqnet.cli.app import app

INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

for _found in pkgutil.iter_modules(commands.__path__):
    importlib.import_module(f"{commands.__name__}.{_found.name}")


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
