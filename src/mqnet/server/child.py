"""The loop as a child process of the server: started, watched, started again when it dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

WORKER = "mqnet.loop.worker"
"""Started by name: nothing of the loop is imported into the server's process."""
LONGEST_PAUSE = 10.0
REFUSED = 2
"""The worker's exit code for what somebody else has to put right: another loop, a pool that is gone."""


class Child:
    """A worker that comes back until its campaign is over."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._process: subprocess.Popen[str] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mqnet-child", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the worker; it is given time to finish what it writes."""
        self._over.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(LONGEST_PAUSE)
            except subprocess.TimeoutExpired:
                process.kill()  # safe at any moment: the next one goes on from what is on disk
                process.wait()
        self._thread.join()

    def _watch(self) -> None:
        pause, said = 0.5, ""
        while not self._over.is_set():
            began = time.monotonic()
            # what ends this process closes the pipe, and with it the worker
            command = [sys.executable, "-m", WORKER, str(self._folder)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with self._process as process:
                assert process.stderr is not None
                words = process.stderr.read()  # till its end; nothing else is written to it but errors
                code = process.wait()
            if code == 0 or self._over.is_set():
                return
            pause = 0.5 if time.monotonic() - began > 60 else min(2 * pause, LONGEST_PAUSE)
            told = (
                words.strip() if code == REFUSED else f"the loop died (exit code {code}) and is started again.\n{words}"
            )
            if told != said:
                self._say(told)
                said = told
            self._over.wait(LONGEST_PAUSE if code == REFUSED else pause)
