"""One loop per campaign: an advisory file lock that the operating system drops when its process dies."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from mqnet.errors import BusyError
from mqnet.store.blobs import disk_error


class LoopLock:
    """Held by the process whose loop works on a campaign; a second one is refused by name."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "loop.lock"
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise disk_error(self._path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._file, 200).decode(errors="replace").strip() or "another process"
            os.close(self._file)
            raise BusyError(
                f"the campaign in '{folder}' is being worked on by {holder}. "
                "Wait for it or stop it; one loop at a time keeps the ledger straight."
            ) from error
        try:
            os.ftruncate(self._file, 0)
            os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        except OSError as error:
            self.release()
            raise disk_error(self._path, error) from error

    def release(self) -> None:
        """Let another loop work on the campaign."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
