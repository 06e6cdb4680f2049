"""A campaign through Label Studio: tasks in MQ-Net's order, answers, skips, corrections and deletions arrive."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_label_studio import TOKEN, LabelStudio, Served
from small_project import truth
from starlette.testclient import TestClient

from mqnet.errors import ConfigError, InputError
from mqnet.project import work
from mqnet.project.folder import opened
from mqnet.project.labelstudio import Client, sync
from mqnet.project.start import People
from mqnet.server.annotations import label_config
from mqnet.server.labelstudio import basic, create_backend
from mqnet.types import OOD, SKIP, Budget, Known

CHOICE = {Known("cat"): "cat", Known("dog"): "dog", OOD: "none of these"}


@pytest.fixture
def studio() -> Iterator[tuple[LabelStudio, Client]]:
    fake = LabelStudio()
    served = Served(fake)
    yield fake, Client(served.address, TOKEN)
    served.close()


def ledger(folder: Path) -> dict[str, object]:
    with opened(folder) as (store, _):
        return {line.item: line.answer for line in store.ledger()}


def offered(folder: Path) -> list[str]:
    return [item["item"] for item in work.ask(folder).items]


def answer_all(fake: LabelStudio, folder: Path) -> list[str]:
    """Answer the open items as Label Studio hands them out; returns their order."""
    order = []
    open_items = set(offered(folder))
    while open_items and (task := fake.next_task()) is not None:
        item = task["data"]["mqnet_item"]
        order.append(item)
        open_items.discard(item)
        fake.annotate(task, CHOICE[truth(item)])
    return order


def test_two_rounds_in_mqnets_order(make, studio) -> None:
    fake, client = studio
    folder = make(people=People(early_answers=False))
    done = sync(folder, client)
    assert fake.project["label_config"] == label_config("vector", ("cat", "dog"))
    assert (fake.project["sampling"], fake.project["model_version"]) == ("Uncertainty sampling", "mqnet-round-0")
    assert done.created == len(fake.tasks) == len(offered(folder))
    for round_ in (0, 1):
        while round_ == work.status(folder)["round"] and (wanted := offered(folder)):
            if work.status(folder)["round"] != round_:
                break
            assert answer_all(fake, folder) == wanted
            assert sync(folder, client).given == len(wanted)
            assert {item: ledger(folder)[item] for item in wanted} == {item: truth(item) for item in wanted}
    assert fake.project["model_version"] != "mqnet-round-0"
    guessed = [
        p["result"] for t in fake.tasks.values() for p in t["predictions"] if p["model_version"] != "mqnet-round-0"
    ]
    assert guessed
    assert all(guessed)
    before = [dict(task) for task in fake.tasks.values()]
    again = sync(folder, client)
    assert (again.given, again.withdrawn, again.created, again.predicted) == (0, 0, 0, 0)
    assert [dict(task) for task in fake.tasks.values()] == before


def test_skips_corrections_and_deletions_are_understood(make, studio) -> None:
    fake, client = studio
    folder = make()
    sync(folder, client)
    first, second, third = (fake.next_task(), *list(fake.tasks.values())[1:3])
    items = [task["data"]["mqnet_item"] for task in (first, second, third)]
    a, b = fake.annotate(first, "cat"), fake.annotate(second, "dog")
    fake.annotate(third, None)
    sync(folder, client)
    assert ledger(folder) == dict(zip(items, (Known("cat"), Known("dog"), SKIP), strict=True))
    fake.annotate(first, "none of these", a)
    fake.delete(second, b)
    done = sync(folder, client)
    assert (done.given, done.withdrawn) == (1, 1)
    assert ledger(folder) == {items[0]: OOD, items[2]: SKIP}
    fake.annotate(first, "cat", a)  # back again: not mistaken for a repetition
    sync(folder, client)
    assert ledger(folder)[items[0]] == Known("cat")


def test_a_deletion_in_a_closed_round_changes_nothing(make, studio) -> None:
    fake, client = studio
    folder = make(people=People(early_answers=False))
    sync(folder, client)
    ids = {}
    while work.status(folder)["round"] == 0:
        for task in fake.tasks.values():
            if not task["annotations"]:
                ids[task["id"]] = fake.annotate(task, "cat")
        sync(folder, client)
    before = ledger(folder)
    task = next(iter(fake.tasks.values()))
    fake.delete(task, ids[task["id"]])
    assert sync(folder, client).standing == 1
    assert ledger(folder) == before


def test_wrong_choices_are_named_and_the_others_taken(make, studio) -> None:
    fake, client = studio
    folder = make()
    sync(folder, client)
    first, second = list(fake.tasks.values())[:2]
    bad = fake.annotate(first, "zebra")
    fake.annotate(second, "dog")
    done = sync(folder, client)
    assert done.given == 1
    assert len(done.refused) == 1
    assert done.refused[0].startswith(f"annotation {bad} chooses 'zebra'")


def test_the_backend_hears_and_predicts(make, studio) -> None:
    fake, client = studio
    folder = make()
    sync(folder, client, backend="http://localhost:9090/", secret="s3cret")
    sync(folder, client, backend="http://localhost:9090", secret="s3cret")
    assert [one["url"] for one in fake.backends] == ["http://localhost:9090"]
    (hook,) = fake.webhooks
    assert (hook["url"], hook["headers"]) == ("http://localhost:9090/webhook", {"Authorization": basic("s3cret")})
    with TestClient(create_backend(folder, "s3cret"), headers=hook["headers"]) as backend:
        assert backend.get("/health").json()["status"] == "UP"
        assert backend.post("/setup", json={"access_token": "a"}).json() == {"model_version": "mqnet-round-0"}
        fake.hook = lambda body: _ok(backend.post("/webhook", json=body))
        tasks = list(fake.tasks.values())
        items = [task["data"]["mqnet_item"] for task in tasks]
        a = fake.annotate(tasks[0], "cat")
        b = fake.annotate(tasks[1], "dog")
        fake.annotate(tasks[2], None)
        assert ledger(folder) == dict(zip(items, (Known("cat"), Known("dog"), SKIP), strict=False))
        fake.annotate(tasks[0], "none of these", a)
        fake.delete(tasks[1], b)
        assert ledger(folder) == {items[0]: OOD, items[2]: SKIP}
        _ok(backend.post("/webhook", json={"action": "START_TRAINING", "project": {"id": 3}}))
        done = sync(folder, client)  # nothing is left for it to do
        assert (done.given, done.withdrawn) == (0, 0)

        strange = {"id": 1, "data": {"text": "not from here"}}
        found = backend.post("/predict", json={"tasks": [*tasks[::-1], strange]}).json()
        assert found["model_version"] == "mqnet-round-0"
        assert len(found["results"]) == len(tasks) + 1
        scores = [one["score"] for one in found["results"]]
        assert scores[:-1] == sorted(scores[:-1], reverse=True)  # tasks were made in the order of the ranking
        assert scores[-1] == 1.0 > scores[0]


def _ok(response) -> None:
    assert response.status_code == 200
    assert response.json()["status"] == "ok"


def test_the_backend_refuses_strangers_and_survives_nonsense(make, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    folder = make()
    with TestClient(create_backend(folder, "s3cret")) as backend:
        for path in ("/setup", "/predict", "/webhook"):
            assert backend.post(path, json={"access_token": TOKEN}).status_code == 401
            assert backend.post(path, headers={"Authorization": basic("wrong")}).status_code == 401
    with TestClient(create_backend(folder)) as backend:
        assert backend.post("/webhook", json={}, headers={"Origin": "http://evil.example"}).status_code == 403
        before = ledger(folder)
        bodies = [
            *(b"", b"[]", b"{", b'{"action": 3}', b'{"action": "ANNOTATION_CREATED"}', b"[" * 100_000),
            b'{"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "x"}], "project": {"id": 1}}',
            b'{"action": "ANNOTATION_CREATED", "project": {"id": 1}, "task": {}, "annotation": {"id": 4}}',
        ]
        for body in bodies:
            for path in ("/webhook", "/predict"):
                response = backend.post(path, content=body)
                assert response.status_code in (200, 422), (path, body)
        assert backend.post("/setup", json={"access_token": TOKEN}).status_code == 200
        assert ledger(folder) == before
    assert TOKEN not in caplog.text


def test_the_client_names_what_is_wrong_and_never_the_token(make, studio) -> None:
    fake, client = studio
    folder = make()
    for address in ("localhost:8080", "http://localhost/tasks/1", "ftp://x/projects/1"):
        with pytest.raises(ConfigError, match="no project of Label Studio's"):
            Client(address, TOKEN)
    with pytest.raises(ConfigError, match="token is empty"):
        Client("http://localhost/projects/1", " ")
    secret = "not-the-token"
    with pytest.raises(InputError, match="401") as refused:
        sync(folder, Client(f"{client.base}/projects/3", secret))
    assert secret not in str(refused.value)
    with pytest.raises(InputError, match="cannot be reached"):
        sync(folder, Client("http://127.0.0.1:9/projects/3", TOKEN))
    fake.project["label_config"] = '<View><Text name="item" value="$text"/><Choices name="label" toName="item"/></View>'
    with pytest.raises(InputError, match="a labelling configuration of its own"):
        sync(folder, client)
    assert not any(TOKEN in path for _, path in fake.requests)


def test_many_tasks_come_in_pages(make, studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqnet.project.labelstudio.PAGE", 7)
    fake, client = studio
    folder = make(budget=Budget(42, None))
    sync(folder, client)
    assert len(fake.tasks) > 28
    assert {task["data"]["mqnet_item"] for task in client.tasks()} == {
        t["data"]["mqnet_item"] for t in fake.tasks.values()
    }
    last = list(fake.tasks.values())[20]
    fake.annotate(last, "cat")
    assert sync(folder, client).given == 1
