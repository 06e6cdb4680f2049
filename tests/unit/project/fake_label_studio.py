"""A small Label Studio: projects, tasks, predictions, annotations, skips, deletions, webhooks, its next-task rule.

It keeps what the real one keeps of what mqnet sends, refuses what it refuses, and shows what it shows.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
TOKEN = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class LabelStudio:
    """One project, number 3, and its annotator, number 7."""

    hook: Callable[[Json], None] | None = None
    project: Json = field(
        default_factory=lambda: {
            "id": 3,
            "label_config": "<View></View>",
            "sampling": "Sequential sampling",
            "model_version": "",
            "skip_queue": "REQUEUE_FOR_OTHERS",
            "maximum_annotations": 1,
        }
    )
    tasks: dict[int, Json] = field(default_factory=dict)
    backends: list[Json] = field(default_factory=list)
    webhooks: list[Json] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    n_ids: int = 100

    def _id(self) -> int:
        self.n_ids += 1
        return self.n_ids

    # -- what annotators do --------------------------------------------------------------------------------------------

    def next_task(self) -> Json | None:
        """Uncertainty sampling: unlabelled tasks with a prediction of the project's version, the lowest score first."""
        found = [
            (p["score"], task["id"], task)
            for task in self.tasks.values()
            if not task["annotations"]
            for p in task["predictions"]
            if p["model_version"] == self.project["model_version"]
        ]
        return min(found)[2] if found else None

    def annotate(self, task: Json, choice: str | None, annotation: int | None = None) -> int:
        """Choose, skip (None), or change an annotation."""
        region = {"from_name": "label", "to_name": "item", "type": "choices", "value": {"choices": [choice]}}
        result = [] if choice is None else [region]
        if annotation is None:
            one = {
                "id": self._id(),
                "completed_by": 7,
                "lead_time": 2.5,
                "result": result,
                "was_cancelled": choice is None,
            }
            task["annotations"].append(one)
            self._say("ANNOTATION_CREATED", annotation=one, task=task)
            return one["id"]
        one = next(a for a in task["annotations"] if a["id"] == annotation)
        one.update(result=result, was_cancelled=choice is None)
        self._say("ANNOTATION_UPDATED", annotation=one, task=task)
        return annotation

    def delete(self, task: Json, annotation: int) -> None:
        """Delete an annotation: its webhook holds ids and nothing else."""
        task["annotations"] = [a for a in task["annotations"] if a["id"] != annotation]
        self._say("ANNOTATIONS_DELETED", annotations=[{"id": annotation}])

    def _say(self, action: str, **payload: Any) -> None:
        if self.hook is not None:
            content = json.loads(json.dumps({"action": action, "project": self.project, **payload}))
            self.hook(content)

    # -- its API -------------------------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        key = f"{method} {path}"
        if key == "GET /api/projects/3/":
            return 200, self.project
        if key == "PATCH /api/projects/3/":
            versions = {p["model_version"] for task in self.tasks.values() for p in task["predictions"]}
            if body.get("model_version") and body["model_version"] not in versions:
                return 400, {"validation_errors": {"model_version": ["Model version doesn't exist in the project"]}}
            self.project.update(body)
            return 200, self.project
        if key == "GET /api/tasks":
            assert query["project"] == "3"
            size, page = int(query["page_size"]), int(query["page"])
            some = list(self.tasks.values())[(page - 1) * size : page * size]
            some = [task | {"cancelled_annotations": _n_cancelled(task)} for task in some]
            return (
                (200, {"tasks": some, "total": len(self.tasks)})
                if some or page == 1
                else (404, {"detail": "Invalid page."})
            )
        if key == "POST /api/projects/3/import":
            for row in body:
                task = {"id": self._id(), "data": row["data"], "annotations": [], "predictions": []}
                task["predictions"] = [self._prediction(p) for p in row.get("predictions", [])]
                self.tasks[task["id"]] = task
            return 201, {"task_count": len(body)}
        if key == "POST /api/projects/3/import/predictions":
            for row in body:
                self.tasks[row["task"]]["predictions"].append(self._prediction(row))
            return 201, {"created": len(body)}
        if "/webhooks/" in path and "START_TRAINING" in (body or {}).get("actions", []):
            return 400, {"validation_errors": {"actions": ['"START_TRAINING" is not a valid choice.']}}
        for name, kept in (("ml", self.backends), ("webhooks/", self.webhooks)):
            if key == f"GET /api/{name}":
                return 200, kept
            if key in (f"POST /api/{name}", f"POST /api/{name}/"):
                kept.append({"id": self._id(), **body})
                if name == "ml":  # a webhook of its own comes with a backend, if there is none
                    url = body["url"].rstrip("/") + "/webhook"
                    if not any(one["url"] == url for one in self.webhooks):
                        own = {"send_for_all_actions": True, "actions": [], "headers": {}, "is_active": True}
                        self.webhooks.append({"id": self._id(), "project": 3, "url": url, "send_payload": True, **own})
                return 201, kept[-1]
        for hook in self.webhooks:
            if key == f"PATCH /api/webhooks/{hook['id']}/":
                hook.update(body)
                return 200, hook
        return 404, {"detail": "Not found."}

    def _prediction(self, row: Json) -> Json:
        allowed = set(re.findall(r'<Choice value="([^"]*)"', self.project["label_config"]))
        for region in row["result"]:
            assert set(region["value"]["choices"]) <= allowed
        return {
            "id": self._id(),
            "result": row["result"],
            "score": float(row["score"]),
            "model_version": row["model_version"],
        }


def _n_cancelled(task: Json) -> int:
    """A count: the skipped annotations themselves are among the others."""
    return sum(one["was_cancelled"] for one in task["annotations"])


class Served:
    """A fake behind a real address."""

    def __init__(self, studio: LabelStudio) -> None:
        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                place = urlsplit(self.path)
                studio.requests.append((self.command, self.path))
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                status, found = 401, {"detail": "Invalid token."}
                if place.path == "/elsewhere":
                    status = 200
                elif self.headers.get("Authorization") == f"Token {TOKEN}":
                    query = {name: values[0] for name, values in parse_qs(place.query).items()}
                    status, found = studio.answer(self.command, place.path, query, body)
                content = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = _do

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/projects/3/data?tab=1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
