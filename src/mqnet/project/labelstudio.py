"""Keeping a Label Studio project and a campaign in step: answers come in, the next round's tasks go out."""

from __future__ import annotations

import base64
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from mqnet.errors import ConfigError, InputError
from mqnet.project import work
from mqnet.project.folder import opened, root_of
from mqnet.project.predict import predictor
from mqnet.server.annotations import CHOICES, ITEM_FIELD, NONE_OF_THESE, SHOWN, label_config, task_data
from mqnet.server.images import Images
from mqnet.server.labelstudio import Bridge, Taken, basic, keep_guesses, model_version, predictions
from mqnet.store.campaign import CampaignStore
from mqnet.store.items import IMAGE, Item
from mqnet.store.project import Project
from mqnet.types import ItemId

Json = dict[str, Any]
PAGE = 100
BATCH = 50
"""Tasks sent at once: with their images they stay far below Label Studio's limit on a request."""
IMAGE_SIDE = 1024
SECONDS = 60.0
ACTIONS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED")
"""What the webhook tells; START_TRAINING comes unasked, from the button of that name."""
ADDRESS = re.compile(r"(https?://[^\s?#]+?)/projects/(\d+)(?:[/?#].*)?")


@dataclass(frozen=True)
class Synced:
    """What a pass did, and where the campaign stands."""

    given: int
    withdrawn: int
    standing: int
    refused: tuple[str, ...]
    created: int
    predicted: int
    model_version: str
    progress: work.Progress

    def record(self) -> Json:
        """As a JSON object."""
        return asdict(self)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would take the token along to wherever it leads."""

    def redirect_request(self, *args: Any, **how: Any) -> None:
        """No request for the new address: the redirect is answered as the refusal it is."""


class Client:
    """Label Studio's API. The token is sent to the address given, and appears nowhere else."""

    def __init__(self, address: str, token: str) -> None:
        found = ADDRESS.fullmatch(address.strip())
        if found is None:
            raise ConfigError(
                f"'{address}' is no project of Label Studio's: give its address, as in http://host/projects/1."
            )
        self.base, self.project = found[1], int(found[2])
        self._token = token.strip()
        if not self._token:
            raise ConfigError("the token is empty. Label Studio shows it under Account & Settings.")
        # a personal access token is a JWT that buys short-lived ones; the older kind is sent as it is
        self._personal = self._token.count(".") == 2
        self._access: str | None = None
        self._opener = urllib.request.build_opener(_Stay)

    def call(self, method: str, path: str, body: object = None, **query: object) -> Any:
        """The JSON answer of one request; a refusal is an error that says what Label Studio says."""
        try:
            return self._send(method, path, body, query, self._authorization())
        except urllib.error.HTTPError as error:
            if error.code == 401 and self._personal and self._access is not None:
                self._access = None
                return self.call(method, path, body, **query)
            said = error.read(2000).decode(errors="replace")
            raise InputError(f"Label Studio refused {method} {path} ({error.code}): {self._hidden(said)}") from error
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise InputError(f"Label Studio at {self.base} cannot be reached: {self._hidden(str(reason))}.") from error

    def tasks(self) -> Iterator[Json]:
        """Every task of the project with its annotations and predictions."""
        page = 1
        while True:
            try:
                found = self.call("GET", "/api/tasks", project=self.project, page=page, page_size=PAGE, fields="all")
            except InputError as error:
                if page > 1 and isinstance(error.__cause__, urllib.error.HTTPError) and error.__cause__.code == 404:
                    return  # a page behind the last one
                raise
            tasks: list[Json] = found["tasks"] if isinstance(found, dict) else found
            yield from tasks
            if len(tasks) < PAGE:
                return
            page += 1

    def _authorization(self) -> str:
        if not self._personal:
            return f"Token {self._token}"
        if self._access is None:
            self._access = self._send("POST", "/api/token/refresh", {"refresh": self._token}, {}, None)["access"]
        return f"Bearer {self._access}"

    def _send(
        self, method: str, path: str, body: object, query: Mapping[str, object], authorization: str | None
    ) -> Any:
        address = f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        request = urllib.request.Request(address, content, headers, method=method)
        with self._opener.open(request, timeout=SECONDS) as response:
            text = response.read()
        return json.loads(text) if text.strip() else None

    def _hidden(self, text: str) -> str:
        short = " ".join(text.split())[:300]
        return short.replace(self._token, "…").replace(self._access or self._token, "…")


def sync(
    folder: Path, client: Client, *, image_prefix: str | None = None, backend: str | None = None,
    secret: str | None = None,
) -> Synced:  # fmt: skip
    """One pass: annotations in, the next round ranked if this one is answered, its tasks out in their order.

    Doing it again changes nothing. `image_prefix` stands before an image's path in its address; without one images
    travel inside their tasks. `backend` is the address at which Label Studio reaches `mqnet labelstudio serve`.
    """
    with opened(folder) as (store, settings):
        _configure(client, store, settings)
        tasks = list(client.tasks())
        taken = _take(Bridge(store, client.project), tasks)
        progress = work.ask(folder).progress
        created, predicted = _offer(folder, store, settings, client, tasks, image_prefix)
        version = model_version(store)
        client.call("PATCH", f"/api/projects/{client.project}/", {"model_version": version})
        if backend is not None:
            _connect(client, backend.rstrip("/"), secret)
        return Synced(
            taken.given, taken.withdrawn, taken.standing, taken.refused, created, predicted, version, progress
        )


def _configure(client: Client, store: CampaignStore, settings: Project) -> None:
    """See that the project asks what the campaign asks, most wanted first; an empty one is set up."""
    classes = store.config().classes
    project = client.call("GET", f"/api/projects/{client.project}/")
    wanted = {
        "sampling": "Uncertainty sampling",
        "skip_queue": "IGNORE_SKIPPED",
        "maximum_annotations": settings.overlap,
    }
    config = label_config(settings.kind, classes)
    found = ElementTree.fromstring(project.get("label_config") or "<View/>")
    if len(found) == 0:
        wanted["label_config"] = config
    else:
        choices = next((tag for tag in found.iter("Choices") if tag.get("name") == CHOICES), None)
        there = {tag.get("value") for tag in choices.iter("Choice")} if choices is not None else set[str | None]()
        if choices is None or choices.get("toName") != SHOWN or not {*classes, NONE_OF_THESE} <= there:
            raise InputError(
                f"project {client.project} has a labelling configuration of its own that does not ask what this "
                f"campaign asks. Use an empty project, or this configuration: {config}"
            )
    changes = {name: value for name, value in wanted.items() if project.get(name) != value}
    if changes:
        client.call("PATCH", f"/api/projects/{client.project}/", changes)


def _take(bridge: Bridge, tasks: Sequence[Json]) -> Taken:
    there: list[Json] = []
    for task in tasks:
        item = task["data"].get(ITEM_FIELD)
        there += [{**annotation, "item": item} for annotation in task.get("annotations") or []]
    there.sort(key=lambda annotation: annotation["id"])
    gone = bridge.given_ids() - {annotation["id"] for annotation in there}
    back = bridge.take_back(sorted(gone))
    taken = bridge.give(there)
    return Taken(taken.given, back.withdrawn, back.standing, taken.refused)


def _offer(
    folder: Path, store: CampaignStore, settings: Project, client: Client, tasks: Sequence[Json], prefix: str | None
) -> tuple[int, int]:
    """Tasks for ranked items that have none, and predictions of the current version for those that have; the counts."""
    version = model_version(store)
    wanted = _wanted(store, settings)
    guesses = _guesses(folder, wanted)
    keep_guesses(folder, version, guesses)
    by_item = {task["data"].get(ITEM_FIELD): task for task in tasks}
    new = [item for item in wanted if item not in by_item]
    for start in range(0, len(new), BATCH):
        some = new[start : start + BATCH]
        scored = predictions(store, some, guesses)
        items = store.items(some)
        rows = [
            {
                "data": task_data(item, settings.kind, _content(items[item], folder, settings, prefix)),
                "predictions": [p],
            }
            for item, p in zip(some, scored, strict=True)
        ]
        client.call("POST", f"/api/projects/{client.project}/import", rows)
    old = [item for item in wanted if item in by_item and not _has_version(by_item[item], version)]
    scored = predictions(store, old, guesses)
    rows = [{"task": by_item[item]["id"], **p} for item, p in zip(old, scored, strict=True)]
    for start in range(0, len(rows), 10 * BATCH):
        client.call("POST", f"/api/projects/{client.project}/import/predictions", rows[start : start + 10 * BATCH])
    return len(new), len(old)


def _wanted(store: CampaignStore, settings: Project) -> list[ItemId]:
    """The items to offer, most wanted first: the open ones, and with early answers the rest of the ranking."""
    query, records = store.offered(), store.rounds()
    if query is None or not query.items:
        return []
    if not settings.early_answers:
        return list(query.items)
    answered = {line.item for line in store.ledger()}
    return [item for item in store.ranking(records[-1].round) if item not in answered]


def _guesses(folder: Path, items: Sequence[ItemId]) -> dict[ItemId, str]:
    """What the model of all answers takes these items for; nothing before it has learned a class."""
    from mqnet.loop.learner import ActiveLearner

    with ActiveLearner.open(folder, looking=True) as learner:
        try:
            found = predictor(learner)
        except InputError:
            return {}
        if not items:
            return {}
        predicted = found.predict(learner.pool.load(learner.pool.ids.select(items)))
    names = [
        NONE_OF_THESE if junk else found.classes[k]
        for k, junk in zip(predicted.classes.tolist(), predicted.is_junk.tolist(), strict=True)
    ]
    return dict(zip(items, names, strict=True))


def _content(item: Item, folder: Path, settings: Project, prefix: str | None) -> str:
    root = root_of(folder, settings)
    if item.kind != IMAGE or root is None:
        return item.ref
    if prefix is not None:
        return prefix + item.ref
    picture = Images(root).picture(item.ref, IMAGE_SIDE)
    content = picture.path.read_bytes() if picture.path is not None else picture.content
    return f"data:{picture.media_type};base64,{base64.b64encode(content).decode()}"


def _has_version(task: Json, version: str) -> bool:
    return any(isinstance(one, dict) and one.get("model_version") == version for one in task.get("predictions") or [])


def _connect(client: Client, backend: str, secret: str | None) -> None:
    """Register the ML backend and its webhook, once."""
    known = client.call("GET", "/api/ml", project=client.project)
    if not any(one.get("url", "").rstrip("/") == backend for one in known):
        access = {"auth_method": "BASIC_AUTH", "basic_auth_user": "mqnet", "basic_auth_pass": secret} if secret else {}
        client.call("POST", "/api/ml", {"url": backend, "project": client.project, "title": "mqnet", **access})
    # it made a webhook of its own for the backend, one that sends no secret: that one is set right
    wanted: Json = {"url": f"{backend}/webhook", "project": client.project, "send_payload": True, "is_active": True}
    wanted |= {"send_for_all_actions": False, "actions": list(ACTIONS)}
    wanted["headers"] = {"Authorization": basic(secret)} if secret else {}
    hooks = client.call("GET", "/api/webhooks/", project=client.project)
    hook = next((one for one in hooks if one.get("url") == wanted["url"]), None)
    if hook is None:
        client.call("POST", "/api/webhooks/", wanted)
    elif any(_sorted(hook.get(name)) != _sorted(value) for name, value in wanted.items()):
        client.call("PATCH", f"/api/webhooks/{hook['id']}/", wanted)


def _sorted(value: object) -> object:
    return sorted(map(str, value)) if isinstance(value, list) else value
