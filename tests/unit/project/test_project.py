"""Projects from a script: made whole or not at all, asked and told, the same as any other campaign."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_project import CLASSES, N, quick_config, truth, write_vectors

from mqnet.data.sources import open_source
from mqnet.errors import AnswerError, ConfigError, InputError, MqnetError, PoolError, StoreError
from mqnet.loop.advance import advance
from mqnet.loop.learner import ActiveLearner
from mqnet.oracles.simulated import SimulatedOracle, Truth
from mqnet.project import work
from mqnet.project.folder import is_project, opened
from mqnet.project.start import People, start
from mqnet.project.vectors import vectors_of
from mqnet.store.imported import IMPORTED, import_answers
from mqnet.store.lock import LoopLock
from mqnet.types import OOD, SKIP, Budget, CampaignConfig, Known, Plugin


def lines(folder: Path) -> list[tuple[int, str, object, float]]:
    with opened(folder) as (store, _):
        return [(line.round, line.item, line.answer, line.cost) for line in store.ledger()]


def run(folder: Path) -> None:
    while (asked := work.ask(folder)).items:
        work.tell(folder, {item["item"]: truth(item["item"]) for item in asked.items})


def test_a_project_told_from_a_script_buys_what_the_simulation_buys(make, tmp_path: Path) -> None:
    folder = make(people=People(early_answers=False))
    run(folder)
    pool = open_source(tmp_path / "photos.npy").ids
    config = quick_config()
    labels = np.repeat([0, 1, -1], N)
    options = {"name": "head", **config.model.options}
    learner = ActiveLearner(
        tmp_path / "photos.npy", CLASSES, budget=10, total_budget=30, cost_ood=2.0, strategy="confidence", model=options
    )
    oracle = SimulatedOracle(Truth(pool, labels, CLASSES))
    while advance(learner, oracle).state != "done":
        pass
    assert lines(folder) == [(line.round, line.item, line.answer, line.cost) for line in learner.ledger]
    where = work.status(folder)
    assert (where["state"], where["spent"]) == ("done", learner.spent)
    assert (where["known"], where["ood"]) == (
        sum(x.cost == 1 for x in learner.ledger),
        sum(x.cost == 2 for x in learner.ledger),
    )
    assert work.ask(folder).items == ()


def test_answers_may_be_partial_corrected_and_taken_back(make) -> None:
    folder = make()
    first, second, *_ = (item["item"] for item in work.ask(folder).items)
    told = work.tell(folder, {first: Known("cat")})
    assert (told.charged, told.progress.known, told.progress.spent) == (1, 1, 1.0)
    assert work.tell(folder, {first: OOD}).progress.spent == 2.0
    assert work.tell(folder, {second: SKIP}).progress.skipped == 1
    assert [(one.item, one.answer, one.withdrawn) for one in work.undo(folder, 2)] == [
        (second, "skip", True),
        (first, "ood", True),
    ]
    assert lines(folder) == []
    assert [item["item"] for item in work.ask(folder).items][:2] == [first, second]
    with pytest.raises(AnswerError, match="no answer of 'script' left"):
        work.undo(folder)


def test_an_answer_of_a_closed_round_stands_until_it_is_corrected(make) -> None:
    folder = make()
    asked = work.ask(folder).items
    work.tell(folder, {item["item"]: Known("cat") for item in asked})
    assert work.status(folder)["state"] in ("asking", "waiting")
    while (now := work.ask(folder)).progress.round == 0:
        work.tell(folder, {item["item"]: Known("cat") for item in now.items})
    taken = work.undo(folder)[0]
    assert (taken.answer, taken.withdrawn) == ("cat", False)
    before = lines(folder)
    work.tell(folder, {taken.item: Known("dog")})
    changed = [(old, new) for old, new in zip(before, lines(folder), strict=True) if old != new]
    assert [new[1:3] for _, new in changed] == [(taken.item, Known("dog"))]


def test_early_answers_wait_for_the_query_that_asks_for_them(make) -> None:
    folder = make()
    work.ask(folder)
    with opened(folder) as (store, _):
        ahead = [item for item in store.ranking(0) if item not in store.offered().items]
        unranked = next(item for i in range(3 * N) if (item := f"{i:03d}") not in store.ranking(0))
    told = work.tell(folder, {ahead[0]: Known("dog")})
    assert (told.charged, told.early, told.progress.early, told.progress.spent) == (0, 1, 1, 0.0)
    with pytest.raises(AnswerError, match=rf"'{unranked}' is not open.*mqnet ask"):
        work.tell(folder, {unranked: OOD})


def test_without_early_answers_only_open_items_are_taken(make) -> None:
    folder = make(people=People(early_answers=False))
    work.ask(folder)
    with opened(folder) as (store, _):
        ahead = [item for item in store.ranking(0) if item not in store.offered().items]
    with pytest.raises(AnswerError, match="is not open"):
        work.tell(folder, {ahead[0]: Known("dog")})
    assert lines(folder) == []


def test_imported_labels_are_round_0_uncharged_and_marked(make) -> None:
    given = {f"{i:03d}": truth(f"{i:03d}") for i in (0, 1, N, N + 1, 2 * N)}
    folder = make(labels=given)
    where = work.status(folder)
    assert (where["state"], where["imported"], where["answered"], where["spent"]) == ("waiting", 5, 0, 0.0)
    asked = work.ask(folder)
    assert asked.progress.round == 1
    assert not {item["item"] for item in asked.items} & set(given)
    with opened(folder) as (store, _):
        assert [(line.item, line.answer, line.annotator) for line in store.ledger()] == [
            (i, a, IMPORTED) for i, a in given.items()
        ]
        assert store.rounds()[1].model is not None
        with pytest.raises(StoreError, match="has not begun"):
            import_answers(store, given)
    run(folder)
    assert work.status(folder)["spent"] > 20  # the whole budget is there for new labels
    work.tell(folder, {"000": Known("dog")})
    assert work.status(folder)["imported"] == 4  # a correction is a person's label, and charged


def test_what_cannot_begin_leaves_nothing_behind(make, tmp_path: Path) -> None:
    source = open_source(write_vectors(tmp_path / "v.npy"))
    _, vectors = vectors_of(source, None)
    out = tmp_path / "new"
    for config, labels, message in (
        (quick_config(budget=Budget(1, 30)), {}, "budget is 1"),
        (CampaignConfig(("cat", "skip"), Budget(10)), {}, "cannot be called 'skip'"),
        (quick_config(strategy=Plugin("mqnett")), {}, "Did you mean 'mqnet'"),
        (quick_config(), {"zebra.png": OOD}, "item 'zebra.png' is not in the pool"),
    ):
        with pytest.raises(MqnetError, match=message):
            start(source, out, config, vectors, labels=labels)
        assert not out.exists()
        assert list(tmp_path.glob(".new*")) == []
    broken = np.load(tmp_path / "v.npy")
    broken[7, 1] = np.nan
    np.save(tmp_path / "v.npy", broken)
    with pytest.raises(PoolError, match=r"item '007'.*column 1"):
        start(source, out, quick_config(), vectors)
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").touch()
    with pytest.raises(InputError, match="is not empty"):
        start(source, out, quick_config(), vectors)
    folder = make()
    with pytest.raises(InputError, match="holds a campaign already"):
        start(source, folder, quick_config(), vectors)
    with pytest.raises(ConfigError, match="holds vectors already"):
        vectors_of(source, "some-encoder")


def test_an_interrupted_start_is_begun_anew(make, tmp_path: Path) -> None:
    source = open_source(write_vectors(tmp_path / "v.npy"))

    def dies(place: Path):
        vectors_of(source, None)[1](place)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(source, tmp_path / "new", quick_config(), dies)
    assert not (tmp_path / "new").exists()
    start(source, tmp_path / "new", quick_config(), vectors_of(source, None)[1])
    assert is_project(tmp_path / "new")
    assert list(tmp_path.glob(".new*")) == []


def test_a_project_can_be_moved_and_looked_at_while_a_loop_works(make, tmp_path: Path) -> None:
    folder = make()
    work.ask(folder)
    shutil.move(folder, tmp_path / "elsewhere" / "project")
    folder = tmp_path / "elsewhere" / "project"
    lock = LoopLock(folder)
    try:
        assert len(work.ask(folder).items) == 5  # of 10, at the dearer outcome's 2
        with ActiveLearner.open(folder, looking=True) as learner:
            assert len(learner.pool.ids) == 3 * N
        work.tell(folder, {item["item"]: truth(item["item"]) for item in work.ask(folder).items})
        assert work.ask(folder).items == () or work.status(folder)["state"] == "asking"
    finally:
        lock.release()
    assert work.ask(folder).items


def test_other_folders_are_no_projects(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`mqnet init SOURCE"):
        work.status(tmp_path / "nothing")
    ActiveLearner(np.eye(4, dtype=np.float32), ["a"], budget=1, folder=tmp_path / "plain").close()
    assert not is_project(tmp_path / "plain")
    with pytest.raises(InputError, match="campaign without people"):
        work.ask(tmp_path / "plain")


def test_ids_of_a_table_are_kept(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"id": ["ä/1.png", "b", "c"], "embedding": [[0.5, 1.0], [2.0, 0.0], [1.0, 1.0]]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet")
    start(source, tmp_path / "p", quick_config(budget=Budget(2, 4)), vectors_of(source, None)[1])
    with opened(tmp_path / "p") as (store, settings):
        assert (settings.name, settings.kind) == ("t", "vector")
        assert list(store.items(["c", "ä/1.png"])) == ["c", "ä/1.png"]
    assert json.loads((tmp_path / "p" / "pool.ids.json").read_text()) == rows["id"]
    assert {item["item"] for item in work.ask(tmp_path / "p").items} <= set(rows["id"])
