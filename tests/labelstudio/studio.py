"""A real Label Studio: started in an empty folder on SQLite, driven as an annotator's browser drives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from people import free_port
from tools import labelstudio_path

TOKEN = "0123456789abcdef0123456789abcdef01234567"
PATIENCE = 300.0
"""Seconds for its first start, which makes the database: about a minute on an idle machine."""
Json = dict[str, Any]


class Refused(Exception):
    """Label Studio answered with an error."""


class Studio:
    """The process and its API."""

    def __init__(self, folder: Path) -> None:
        program = labelstudio_path()
        assert program is not None
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "label-studio.log"
        environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"),
            "LABEL_STUDIO_USERNAME": "ada@example.org",
            "LABEL_STUDIO_PASSWORD": "no secret at all",
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            # a backend on loopback is refused otherwise
            "SSRF_PROTECTION_ENABLED": "false",
            "ML_BLOCK_LOCAL_IP": "false",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
        }
        (folder / "data").mkdir()
        command = [program, "start", "--no-browser", "--port", str(port), "--host", self.url]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        began = time.monotonic()
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except (urllib.error.URLError, TimeoutError, ConnectionError):
                ended = self._process.poll() is not None
                if ended or time.monotonic() - began > PATIENCE:
                    self.close()
                    raise AssertionError(f"Label Studio did not start:\n{self.log.read_text()[-3000:]}") from None
                time.sleep(1)

    def close(self) -> None:
        """End it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        """The JSON answer of a request."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=100) as reply:
                text = reply.read()
        except urllib.error.HTTPError as error:
            raise Refused(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error
        return json.loads(text) if text.strip() else None

    # -- what annotators do

    def project(self, title: str) -> int:
        """A new, empty project."""
        return self("POST", "/api/projects/", {"title": title})["id"]

    def next_task(self, project: int) -> Json | None:
        """The task that the labelling page would show next."""
        try:
            return self("GET", f"/api/projects/{project}/next")
        except Refused as refused:
            if " 404 " in str(refused):
                return None
            raise

    def annotate(self, task: Json, choice: str) -> int:
        """Choose a class; the annotation's id."""
        return self("POST", f"/api/tasks/{task['id']}/annotations/", {"result": chosen(choice), "lead_time": 2.5})["id"]

    def change(self, annotation: int, choice: str) -> None:
        """Choose another class."""
        self("PATCH", f"/api/annotations/{annotation}/", {"result": chosen(choice)})

    def skip(self, task: Json) -> int:
        """Skip a task."""
        return self("POST", f"/api/tasks/{task['id']}/annotations/", {"result": [], "was_cancelled": True})["id"]

    def delete(self, annotation: int) -> None:
        """Delete an annotation."""
        self("DELETE", f"/api/annotations/{annotation}/")


def chosen(choice: str) -> list[Json]:
    """The result of an annotation in MQ-Net's labelling configuration."""
    return [{"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}]
