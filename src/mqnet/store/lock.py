"""One loop per campaign: an advisory file lock that the operating system drops when its process dies."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from mqnet.errors import BusyError


class LoopLock:
    """Held by the process whose loop works on a campaign; a second one is refused by name."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "loop.lock"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._file, 200).decode(errors="replace").strip() or "another process"
            os.close(self._file)
            raise BusyError(
                f"the campaign in '{folder}' is being worked on by {holder}. "
                "Wait for it or stop it; one loop at a time keeps the ledger straight."
            ) from error
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        """Let another loop work on the campaign."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
