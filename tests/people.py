"""Campaigns with people for the tests: a project on disk, robots that answer over HTTP, servers that can be killed."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mqnet.data.pools import open_npy
from mqnet.loop.learner import ActiveLearner
from mqnet.oracles.simulated import Truth
from mqnet.store.items import Item
from mqnet.store.people import People
from mqnet.store.project import Project
from mqnet.types import Known

PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def answer_body(answer: object) -> dict[str, str]:
    return {"kind": "known", "name": answer.name} if isinstance(answer, Known) else {"kind": "ood"}


class Unanswered(Exception):
    """The server is away."""


class Client:
    """One connection to a server, by token; made anew when the server comes back."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        self._connection: http.client.HTTPConnection | None = None

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON; Unanswered when the connection broke: the request may or may not have been served."""
        sent = {"Authorization": f"Bearer {self.token}", "X-Mqnet": "1", **headers}
        content = None if body is None else json.dumps(body)
        if content is not None:
            sent["Content-Type"] = "application/json"
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                self._connection.connect()
                assert self._connection.sock is not None
                self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection.request(method, path, content, sent)
            reply = self._connection.getresponse()
            return reply.status, json.loads(reply.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise Unanswered from error

    def patiently(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The same request again until the server answers it."""
        began = time.monotonic()
        while True:
            try:
                return self(method, path, body)
            except Unanswered:
                assert time.monotonic() - began < PATIENCE, f"{method} {path}: the server stays away"
                time.sleep(0.02)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass
class Robot:
    """An annotator that answers the truth, now and then takes something back, and never gives up.

    `pause` is how long it looks at an item, `wait` when it asks again where there is nothing to answer.
    """

    client: Client
    truth: dict[str, dict[str, str]]
    seed: int
    pause: float = 0.0
    at_once: int = 3
    wait: float = 0.02
    undoes: float = 0.0
    accepted: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    n_asked: int = 0
    error: BaseException | None = None

    def run(self, over: threading.Event | None = None) -> None:
        try:
            self._run(over)
        except BaseException as error:
            self.error = error
        finally:
            self.client.close()

    def _run(self, over: threading.Event | None) -> None:
        chance, began = random.Random(self.seed), time.monotonic()
        while over is None or not over.is_set():
            status, now = self.client.patiently("GET", f"/api/next?n={self.at_once}")
            assert status == 200, now
            self.n_asked += 1
            if now["state"] == "done":
                return
            if not now["items"]:
                assert time.monotonic() - began < PATIENCE, now
                time.sleep(self.wait)
            for item in now["items"]:
                began = time.monotonic()
                self._answer(item["id"])
                if chance.random() < self.undoes:
                    self._undo()
                time.sleep(self.pause)

    def _answer(self, item: str) -> None:
        one = {"item": item, "answer": self.truth[item], "seconds": 1.0, "view": "focus", "key": uuid.uuid4().hex}
        began = time.perf_counter()
        status, reply = self.client.patiently("POST", "/api/answers", {"answers": [one]})
        self.seconds.append(time.perf_counter() - began)
        assert status in (200, 409), reply  # 409: what somebody took back was promised to this item
        if status == 200:
            self.accepted.append(item)

    def _undo(self) -> None:
        status, reply = self.client.patiently("POST", "/api/undo", {})
        assert status in (200, 409), reply
        if status == 200:
            self._answer(reply["item"]["id"])


def start_all(robots: list[Robot], over: threading.Event | None = None) -> list[threading.Thread]:
    threads = [threading.Thread(target=robot.run, args=(over,), daemon=True) for robot in robots]
    for thread in threads:
        thread.start()
    return threads


@dataclass(frozen=True)
class Given:
    """What a campaign is made of, and the truth about it."""

    folder: Path
    learner: dict[str, Any]
    truth: Truth

    def answers(self) -> dict[str, dict[str, str]]:
        labels = self.truth.labels.tolist()
        return {
            item: {"kind": "known", "name": self.truth.classes[label]} if label >= 0 else {"kind": "ood"}
            for item, label in zip(self.truth.ids, labels, strict=True)
        }


def digits_campaign(folder: Path, n_items: int = 200, **changes: Any) -> Given:
    """Settings of a small campaign on handwritten digits, the last six of them junk; its pool lies in the folder."""
    from sklearn.datasets import load_digits

    vectors, labels = load_digits(return_X_y=True)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "pool.npy", (vectors[:n_items] / 16.0).astype(np.float32))
    labels = np.where(labels[:n_items] < 4, labels[:n_items], -1)
    truth = Truth(open_npy(folder / "pool.npy").ids, labels, ("zero", "one", "two", "three"))
    learner = {
        "pool": folder / "pool.npy", "classes": truth.classes, "budget": 16.0, "rounds": 4, "cost_ood": 2.0,
        "strategy": "mqnet", "model": {"name": "head", "hidden": 8, "n_steps": 20, "batch_size": 16}, "seed": 5,
    }  # fmt: skip
    return Given(folder, {**learner, **changes}, truth)


def make_project(given: Given, folder: Path, **settings: Any) -> None:
    """The campaign as a project that people can work on."""
    with ActiveLearner(folder=folder, **given.learner) as learner:
        chosen = {"name": "digits", "kind": "vector", "root": None, "encoder": None, "vectors": "pool.npy", **settings}
        learner.store.set_project(Project(**chosen))
        learner.store.add_items(Item(item, chosen["kind"]) for item in learner.pool.ids)


def let_in(folder: Path, *names: str, role: str = "annotator") -> list[str]:
    """Tokens of new people."""
    from mqnet.store.campaign import CampaignStore

    store = CampaignStore.open(folder)
    people = People(store)
    there = {user.name for user in people.everybody() if not user.revoked}
    for name in there.intersection(names):
        people.revoke(name)
    tokens = [people.add(name, role) for name in names]
    store.close()
    return tokens
