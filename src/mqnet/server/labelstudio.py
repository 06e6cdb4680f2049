"""Label Studio on the same campaign: annotations become votes, and an ML backend answers with ranks and classes.

Nothing of `/setup` is read: it carries a token of Label Studio's that has no use here and must never be seen again.
"""

from __future__ import annotations

import base64
import hmac
import json
import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from mqnet.errors import AnswerError, MqnetError
from mqnet.server.annotations import ITEM_FIELD, answer_of, prediction
from mqnet.store.blobs import write_durably
from mqnet.store.campaign import CampaignStore
from mqnet.store.inbox import Given, Inbox
from mqnet.store.recall import Keyed, live, recall
from mqnet.types import ItemId

GUESSES = "labelstudio.json"
"""What the model takes the ranked items for: written by `mqnet labelstudio sync`, which can ask the model."""
MOST_BYTES = 64 * 1024 * 1024
USER = "mqnet"
Json = dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What became of annotations: votes given, taken back, standing since their round is closed; and why some were not
    taken."""

    given: int = 0
    withdrawn: int = 0
    standing: int = 0
    refused: tuple[str, ...] = ()


class Bridge:
    """The annotations of one Label Studio project as votes. A vote's key begins with its annotation's id."""

    def __init__(self, store: CampaignStore, project: int) -> None:
        self._store, self._project = store, project
        self._classes = store.config().classes

    def give(self, annotations: Iterable[Mapping[str, Any]]) -> Taken:
        """Take annotations, each with its `item`: what stands already changes nothing, what changed is a correction."""
        standing = {vote.key.rsplit("-", 1)[0]: vote for vote in live(self._store, self._prefix())}
        n_given, refused = 0, list[str]()
        for one in annotations:
            try:
                n_given += self._give(one, standing)
            except AnswerError as error:
                refused.append(str(error))
        return Taken(given=n_given, refused=tuple(refused))

    def _give(self, one: Mapping[str, Any], standing: Mapping[str, Keyed]) -> bool:
        item, answer = one.get("item"), answer_of(one, self._classes)
        if not isinstance(item, str):
            raise AnswerError(f"annotation {one.get('id', '?')} is on a task without an item of this campaign.")
        key, who = self._key(one["id"]), one.get("completed_by")
        old = standing.get(key)
        if old is not None and (old.item, old.answer) == (item, answer):
            return False
        who = who.get("id") if isinstance(who, Mapping) else who
        seconds = one.get("lead_time")
        took = float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None
        Inbox(self._store).submit(f"labelstudio-{who}", [Given(item, answer, f"{key}-{uuid.uuid4().hex[:12]}", took)])
        return True

    def take_back(self, ids: Iterable[int]) -> Taken:
        """Undo deleted annotations; an answer whose round is closed stands."""
        n_withdrawn = n_standing = 0
        for one in ids:
            for vote in live(self._store, f"{self._key(one)}-"):
                if recall(self._store, vote.key):
                    n_withdrawn += 1
                else:
                    n_standing += 1
        Inbox(self._store).settle()
        return Taken(withdrawn=n_withdrawn, standing=n_standing)

    def given_ids(self) -> set[int]:
        """The annotations that have a live vote."""
        start = len(self._prefix())
        return {int(vote.key[start:].split("-")[0]) for vote in live(self._store, self._prefix())}

    def _prefix(self) -> str:
        return f"labelstudio-{self._project}-"

    def _key(self, annotation: object) -> str:
        if not isinstance(annotation, int):
            raise AnswerError(f"{annotation!r} is not the id of an annotation.")
        return f"{self._prefix()}{annotation}"


def model_version(store: CampaignStore) -> str:
    """The name of the model that ranked the newest round: only its predictions count in Label Studio."""
    records = store.rounds()
    return f"mqnet-round-{records[-1].round if records else 0}"


def predictions(store: CampaignStore, items: Sequence[ItemId | None], guesses: Mapping[ItemId, str]) -> list[Json]:
    """A prediction for each item: scores rise with the rank, so that uncertainty sampling asks in MQ-Net's order.

    Items outside the ranking come last, and so do tasks without an item.
    """
    records, version = store.rounds(), model_version(store)
    ranking = store.ranking(records[-1].round) if records else []
    place = {item: i / (len(ranking) + 1) for i, item in enumerate(ranking)}
    return [
        prediction(version, guesses.get(item or ""), place.get(item or "", 1.0)) for item in items
    ]  # nothing is known of ''


def keep_guesses(folder: Path, version: str, guesses: Mapping[ItemId, str]) -> None:
    """Note what a model takes items for, for the backend to tell."""
    text = json.dumps({"model_version": version, "guesses": dict(guesses)}, ensure_ascii=False)
    write_durably(folder / GUESSES, text.encode())


def kept_guesses(folder: Path, version: str) -> dict[ItemId, str]:
    """What this version's model takes items for; nothing where that was not noted."""
    path = folder / GUESSES
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found["guesses"] if found.get("model_version") == version else {}


def create_backend(folder: str | Path, secret: str | None = None) -> FastAPI:
    """The ML backend of the campaign in a folder; with a secret, everything but `/health` asks for it (Basic auth)."""
    place = Path(folder)
    store = CampaignStore.open(place)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None]:
        yield
        store.close()

    app = FastAPI(title="mqnet for Label Studio", docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)

    async def health() -> Json:
        return {"status": "UP", "model_class": "mqnet"}

    async def setup(request: Request) -> JSONResponse:
        if refusal := _refusal(request, secret):
            return refusal
        return JSONResponse({"model_version": await run_in_threadpool(model_version, store)})

    async def predict(request: Request) -> JSONResponse:
        if refusal := _refusal(request, secret):
            return refusal
        body = await _body(request)
        tasks = body.get("tasks") if body else None
        if not isinstance(tasks, list):
            return _error(422, "expected {tasks: [...]}.")
        return JSONResponse(await run_in_threadpool(_predict, place, store, tasks))

    async def webhook(request: Request) -> JSONResponse:
        if refusal := _refusal(request, secret):
            return refusal
        body = await _body(request)
        if body is None or not isinstance(body.get("action"), str):
            return _error(422, "expected {action: ...}.")
        try:
            return JSONResponse(await run_in_threadpool(_heard, store, body))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return _error(422, f"this is no webhook of Label Studio's: {type(error).__name__}.")

    async def failed(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, MqnetError)
        return _error(422, str(error))

    app.add_exception_handler(MqnetError, failed)
    for path in ("/", "/health"):
        app.get(path)(health)
    app.post("/setup", response_model=None)(setup)
    app.post("/predict", response_model=None)(predict)
    app.post("/webhook", response_model=None)(webhook)
    return app


def basic(secret: str) -> str:
    """The Authorization header that a secret stands for."""
    return "Basic " + base64.b64encode(f"{USER}:{secret}".encode()).decode()


def _predict(folder: Path, store: CampaignStore, tasks: Sequence[Any]) -> Json:
    version = model_version(store)
    items = [_item(task) for task in tasks]
    return {"results": predictions(store, items, kept_guesses(folder, version)), "model_version": version}


def _heard(store: CampaignStore, body: Json) -> Json:
    action = body["action"]
    if action not in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"):
        return {"status": "ok"}  # START_TRAINING, too: the loop trains when a round is answered
    bridge = Bridge(store, int(body["project"]["id"]))
    if action == "ANNOTATIONS_DELETED":
        taken = bridge.take_back([int(one["id"]) for one in body["annotations"]])
    else:
        taken = bridge.give([{**body["annotation"], "item": _item(body["task"])}])
    return {"status": "ok", "given": taken.given, "withdrawn": taken.withdrawn, "refused": list(taken.refused)}


def _item(task: Any) -> ItemId | None:
    found = (task.get("data") or {}).get(ITEM_FIELD) if isinstance(task, dict) else None
    return found if isinstance(found, str) else None


def _refusal(request: Request, secret: str | None) -> JSONResponse | None:
    if request.headers.get("origin") is not None:
        return _error(403, "browsers have no business here.")
    if secret is None or hmac.compare_digest(request.headers.get("authorization", "").encode(), basic(secret).encode()):
        return None
    return _error(401, "the secret is missing or wrong.")


async def _body(request: Request) -> Json | None:
    """The JSON object of a request; None for anything else, or too much of it."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _error(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)
