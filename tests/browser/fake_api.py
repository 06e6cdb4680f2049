"""The app's HTTP contract in memory: a campaign the tests can put into any state, a network they can break.

Items come in the order given, a round is the next `round_budget` of them, and "training" lasts until `trained()` is
called.
What the real server must do is tested against the real server; this one is for what the page does.
"""

from __future__ import annotations

import json
import mimetypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

STATIC = Path(__file__).parents[2] / "src" / "mqnet" / "server" / "static"
PAGES = {"/": "index.html", "/dashboard": "dashboard.html", "/review": "review.html", "/people": "people.html"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
Reply = tuple[int, Any]


@dataclass
class Vote:
    """An answer given in the app."""

    item: str
    answer: dict[str, Any]
    user: str
    round: int | None
    key: str
    seconds: float | None
    view: str
    state: str = "live"
    at: float = field(default_factory=time.time)


@dataclass
class FakeCampaign:
    """A campaign in memory. `items` maps ids to a text, or to the bytes of an image."""

    items: dict[str, str | bytes]
    classes: list[str]
    round_budget: int = 5
    total_budget: int = 15
    name: str = "birds"
    early_answers: bool = True
    users: dict[str, str] = field(default_factory=lambda: {"ada": "owner"})
    insight: dict[str, Any] | None = None
    dashboard: dict[str, Any] = field(default_factory=dict[str, Any])
    worker_alive: bool = True
    trains_at_once: bool = False
    round: int = 0
    training: bool = False
    revoked: set[str] = field(default_factory=set[str])
    votes: list[Vote] = field(default_factory=list[Vote])
    flags: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    refuse: Callable[[str, str], Reply | None] = lambda method, path: None
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self.asked = list(self.items)[: self.round_budget]
        self.closed: list[str] = []

    # ---- what tests do

    def trained(self) -> None:
        """The worker has finished: the next round opens with the next unanswered items."""
        with self.lock:
            self.training = False
            self.round += 1
            left = [item for item in self.items if item not in self.closed]
            self.asked = left[: self.round_budget]
            for vote in self.votes:
                if vote.item in self.asked and vote.round is None:
                    vote.round = self.round
            self._close()

    def live(self, user: str | None = None) -> dict[str, dict[str, Any]]:
        """The answer that stands for each item."""
        return {v.item: v.answer for v in self.votes if v.state == "live" and user in (None, v.user)}

    # ---- what the server says

    @property
    def spent(self) -> int:
        return len([v for v in self.votes if v.state == "live" and v.round is not None and v.answer["kind"] != "skip"])

    def state(self) -> dict[str, Any]:
        live = self.live()
        done = len(self.closed) >= self.total_budget or len(self.closed) == len(self.items)
        kinds = [answer["kind"] for answer in live.values()]
        name = "done" if done else ("early" if self.early_answers else "training") if self.training else "asking"
        answered = len([item for item in self.asked if item in live])
        return {
            "round": self.round, "state": name, "message": "",
            "progress": {
                "asked": len(self.asked), "answered": answered, "open": len(self.asked) - answered,
                "round_spent": answered, "round_budget": self.round_budget, "spent": self.spent,
                "total_budget": self.total_budget, "n_known": kinds.count("known"), "n_ood": kinds.count("ood"),
                "n_skipped": kinds.count("skip"),
            },
            "worker": {"alive": self.worker_alive, "message": "", "eta_seconds": 20 if self.training else None},
        }  # fmt: skip

    def shown(self, item: str, early: bool = False) -> dict[str, Any]:
        content = self.items[item]
        text = content if isinstance(content, str) else None
        return {
            "id": item, "kind": "image" if text is None else "text", "text": text, "early": early,
            "image": None if text is not None else f"/api/items/{item}/image",
        }  # fmt: skip

    def next(self, user: str, n: int) -> dict[str, Any]:
        live = self.live()
        state = self.state()
        if state["state"] == "asking":
            found = [item for item in self.asked if item not in live]
        elif state["state"] == "early":
            found = [item for item in self.items if item not in live and item not in self.closed]
        else:
            found = []
        return state | {"items": [self.shown(item, state["state"] == "early") for item in found[:n]]}

    def answer(self, user: str, answers: list[dict[str, Any]]) -> Reply:
        accepted: list[dict[str, Any]] = []
        for given in answers:
            if given["item"] not in self.items:
                return 404, {"error": f"item '{given['item']}' is not in the pool."}
        for given in answers:
            item = given["item"]
            early = item not in self.asked and item not in self.closed
            accepted.append({"item": item, "key": given["key"], "early": early, "charged": not early})
            if any(vote.key == given["key"] for vote in self.votes):
                continue
            round_ = None if early else self.round
            for vote in self.votes:
                if vote.item == item and vote.state == "live" and vote.user == user:
                    vote.state, round_ = "replaced", vote.round
            self.votes.append(Vote(item, given["answer"], user, round_, given["key"], given["seconds"], given["view"]))
        self._close()
        return 200, {"accepted": accepted, "progress": self.state()["progress"]}

    def _close(self) -> None:
        if not self.training and all(item in self.live() for item in self.asked):
            self.closed += [item for item in self.asked if item not in self.closed]
            self.training = len(self.closed) < min(self.total_budget, len(self.items))
            if self.training and self.trains_at_once:
                self.trained()

    def undo(self, user: str) -> Reply:
        mine = [vote for vote in self.votes if vote.user == user and vote.state == "live"]
        walked = getattr(self, "walked", set[str]())
        for vote in reversed(mine):
            if vote.item in self.closed:
                if vote.key in walked:
                    continue
                self.walked = walked | {vote.key}
                return 200, {"item": self.shown(vote.item), "was": vote.answer, "withdrawn": False}
            vote.state = "withdrawn"
            return 200, {"item": self.shown(vote.item), "was": vote.answer, "withdrawn": True}
        return 409, {"error": "nothing is left to undo."}

    def history(self, user: str, limit: int) -> dict[str, Any]:
        mine = [vote for vote in reversed(self.votes) if vote.user == user and vote.state == "live"][:limit]
        return {
            "answers": [
                {"item": v.item, "answer": v.answer, "round": v.round, "at": v.at}
                | {name: self.shown(v.item)[name] for name in ("text", "image")}
                for v in mine
            ]
        }

    def review(self) -> dict[str, Any]:
        items = {item for item, _ in self.flags}
        return {
            "items": [
                {
                    "id": item, "text": self.shown(item)["text"], "image": self.shown(item)["image"], "proposed": None,
                    "votes": [
                        {"annotator": v.user, "answer": v.answer, "at": v.at}
                        for v in self.votes if v.item == item and v.state == "live"
                    ],
                    "flags": [
                        {"annotator": who, "note": note}
                        for (flagged, who), note in self.flags.items() if flagged == item
                    ],
                }
                for item in sorted(items)
            ]
        }  # fmt: skip

    def handle(self, method: str, path: str, query: dict[str, str], body: Any, user: str | None) -> Reply:
        if user is None:
            return 401, {"error": "Open the link you were given."}
        owner = self.users[user] == "owner"
        if path == "/api/campaign":
            return 200, {
                "name": self.name, "classes": self.classes, "kind": "image", "round_budget": self.round_budget,
                "total_budget": self.total_budget, "costs": {"known": 1, "ood": 1, "skip": 0},
                "budget_unit": "labels", "n_items": len(self.items), "overlap": 1,
                "early_answers": self.early_answers, "user": {"name": user, "role": self.users[user]},
            }  # fmt: skip
        if path == "/api/state":
            return 200, self.state()
        if path == "/api/next":
            return 200, self.next(user, int(query.get("n", "10")))
        if path == "/api/answers":
            return self.answer(user, body["answers"])
        if path == "/api/undo":
            return self.undo(user)
        if path == "/api/history":
            return 200, self.history(user, int(query.get("limit", "50")))
        if path == "/api/flags":
            if body["flagged"]:
                self.flags[body["item"], user] = body["note"]
            else:
                self.flags.pop((body["item"], user), None)
            return 200, {}
        if path == "/api/dashboard":
            return 200, {
                "spent": self.spent,
                "total_budget": self.total_budget,
                "insight": self.insight,
            } | self.dashboard
        if path.startswith("/api/items/") and (item := path.removeprefix("/api/items/")) in self.items:
            return 200, self.shown(item)
        if not owner:
            return 403, {"error": "Only the owner may do this."}
        if path == "/api/review":
            return 200, self.review()
        if path == "/api/people" and method == "GET":
            people = [{"name": n, "role": r, "revoked": n in self.revoked} for n, r in self.users.items()]
            return 200, {"people": people}
        if path.startswith("/api/people/"):
            self.revoked.add(path.split("/")[3])
            return 200, {}
        if path == "/api/people":
            self.users[body["name"]] = body["role"]
            link = f"http://127.0.0.1/login?token={body['name']}"
            return 200, {"name": body["name"], "role": body["role"], "link": link}
        return 404, {"error": "There is nothing here."}


class _Handler(BaseHTTPRequestHandler):
    campaign: FakeCampaign
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply("GET", None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        self._reply("POST", json.loads(self.rfile.read(length) or b"{}"))

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _reply(self, method: str, body: Any) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        cookies = dict(cookie.split("=", 1) for cookie in self.headers.get("Cookie", "").split("; ") if cookie)
        user = cookies.get("mqnet")
        campaign = self.campaign
        with campaign.lock:
            campaign.requests.append((method, path))
            broken = campaign.refuse(method, path)
            if broken is not None and broken[0] == 0:
                self.close_connection = True
            elif broken is not None:
                self._send(*broken)
            elif path == "/login":
                cookie = f"mqnet={query['token']}; HttpOnly; SameSite=Strict"
                self._bytes(303, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})
            elif path in PAGES or path.startswith("/static/"):
                file = STATIC / (PAGES.get(path) or path.removeprefix("/static/"))
                self._bytes(200, file.read_bytes(), mimetypes.guess_type(file)[0] or "text/plain")
            elif path.endswith("/image") and isinstance(image := campaign.items.get(path.split("/")[3]), bytes):
                self._bytes(200, image, "image/png", {"Cache-Control": "private, max-age=3600"})
            else:
                self._send(*campaign.handle(method, path, query, body, user if user in campaign.users else None))

    def _send(self, status: int, reply: Any) -> None:
        self._bytes(status, json.dumps(reply).encode(), "application/json")

    def _bytes(self, status: int, content: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        fixed = {"Content-Type": kind, "Content-Length": str(len(content)), "Content-Security-Policy": POLICY}
        for name, value in (fixed | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection is no news."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(campaign: FakeCampaign) -> Iterator[str]:
    """The address at which a campaign is served."""
    handler = type("Handler", (_Handler,), {"campaign": campaign})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
