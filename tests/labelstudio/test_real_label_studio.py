"""A campaign in a real Label Studio (`make test-labelstudio`): what arrives is held against the campaign's ledger."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from studio import TOKEN, Studio

from mqnet.store.campaign import CampaignStore
from mqnet.types import OOD, SKIP, Answer, Known
from people import free_port
from processes import Ended, Zygote

pytestmark = pytest.mark.labelstudio
NONE = "none of these"
SECRET = "not for strangers"
WORDS = {"cat": "purrs meow whiskers", "dog": "barks woof fetches", NONE: "invoice tax quarter"}
PATIENCE = 30.0


@pytest.fixture(scope="module")
def mqnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    started = Studio(tmp_path_factory.mktemp("studio"))
    yield started
    started.close()


def truth(item: str) -> str:
    return ("cat", "dog", NONE)[int(item.removeprefix("q")) % 3]


def eventually(holds: Callable[[], bool]) -> None:
    """Webhooks come a moment after what they tell of."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.1)


@pytest.fixture
def campaign(mqnet: Zygote, tmp_path: Path) -> Path:
    rows = [f'q{i},"{WORDS[truth(f"q{i}")]} {i}"' for i in range(60)]
    (tmp_path / "pets.csv").write_text("\n".join(["id,text", *rows]) + "\n")
    options = "--classes cat,dog --total-budget 18 --round-budget 6 --encoder ngrams --no-early-answers --out pets"
    ended = mqnet("init", "pets.csv", *options.split(), cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    return tmp_path / "pets"


def ledger(folder: Path) -> dict[str, Answer]:
    store = CampaignStore.open(folder)
    try:
        return {line.item: line.answer for line in store.ledger()}
    finally:
        store.close()


def as_answer(word: str) -> Answer:
    return OOD if word == NONE else Known(word)


def test_two_rounds_in_the_campaigns_order(mqnet: Zygote, studio: Studio, campaign: Path, monkeypatch) -> None:
    monkeypatch.chdir(campaign.parent)
    project, port = studio.project("pets"), free_port()
    (campaign.parent / "token").write_text(TOKEN)
    environment = {"env": {"MQNET_BACKEND_SECRET": SECRET}}
    backend = f"http://127.0.0.1:{port}"
    serving = mqnet.start(
        *("labelstudio", "serve", campaign, "--port", port, "--secret-env", "MQNET_BACKEND_SECRET"),
        cwd=campaign.parent,
        **environment,
    )
    eventually(lambda: _answers(f"{backend}/health"))

    def sync(*more: object) -> Ended:
        ended = mqnet(
            *("labelstudio", "sync", f"{studio.url}/projects/{project}", campaign, "--token-file", "token"),
            *("--json", *more), cwd=campaign.parent, **environment,
        )  # fmt: skip
        assert (ended.code, ended.err) == (0, "")
        return ended

    def open_items() -> list[str]:
        ended = mqnet("ask", campaign, "--json", cwd=campaign.parent)
        return [one["item"] for one in json.loads(ended.out)["items"]]

    def given(item: str, answer: Answer | None) -> None:
        eventually(lambda: ledger(campaign).get(item) == answer)

    expected: dict[str, Answer] = {}

    def answer_all() -> None:
        """Answer what is open, as Label Studio hands it out: in the campaign's order."""
        for item in open_items():
            task = studio.next_task(project)
            assert task is not None
            assert task["data"]["mqnet_item"] == item
            studio.annotate(task, truth(item))
            expected[item] = as_answer(truth(item))
            given(item, expected[item])

    try:
        sync("--backend", backend, "--secret-env", "MQNET_BACKEND_SECRET")
        # round 0: a mistake that is deleted, a skip, a correction, then the rest
        first, second, third = open_items()[:3]
        task = studio.next_task(project)
        wrong = studio.annotate(task, "dog" if truth(first) != "dog" else "cat")
        given(first, as_answer("dog" if truth(first) != "dog" else "cat"))
        studio.delete(wrong)
        given(first, None)
        task = studio.next_task(project)
        assert task["data"]["mqnet_item"] == first  # open again, and first again
        studio.annotate(task, truth(first))
        task = studio.next_task(project)
        assert task["data"]["mqnet_item"] == second
        studio.skip(task)
        given(second, SKIP)
        task = studio.next_task(project)
        assert task["data"]["mqnet_item"] == third
        annotation = studio.annotate(task, "cat" if truth(third) != "cat" else "dog")
        given(third, as_answer("cat" if truth(third) != "cat" else "dog"))
        studio.change(annotation, truth(third))
        given(third, as_answer(truth(third)))
        expected |= {first: as_answer(truth(first)), second: SKIP, third: as_answer(truth(third))}
        sync()  # a replacement for the item that was skipped
        answer_all()
        done = json.loads(sync().out)  # round 1 is ranked, and its tasks go out
        assert (done["model_version"], done["given"]) == ("mqnet-round-1", 0)  # the webhooks had told everything
        assert done["created"] == len(open_items()) > 0
        answer_all()
        assert json.loads(sync().out)["model_version"] == "mqnet-round-2"
        assert ledger(campaign) == expected
        # what a webhook did not tell, since the backend was away, the next sync does
        serving.kill()
        serving.wait()
        item = open_items()[0]
        annotation = studio.annotate(studio.next_task(project), truth(item))
        assert item not in ledger(campaign)
        assert json.loads(sync().out)["given"] == 1
        given(item, as_answer(truth(item)))
        studio.delete(annotation)
        assert json.loads(sync().out)["withdrawn"] == 1
        given(item, None)
    finally:
        if serving.out.exists():
            told = serving.out.read_text() + serving.err.read_text()
            assert TOKEN not in told
            assert SECRET not in told


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as reply:
            return json.loads(reply.read())["status"] == "UP"
    except OSError:
        return False
