"""Resuming equals not stopping: a campaign interrupted at any write ends bit for bit like one that was not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from crashes import MOMENTS, Death, Died, abandon, careless_disk
from mqnet.data.pools import ArrayPool
from mqnet.errors import BusyError, PoolError, StoreError
from mqnet.informativeness.confidence import confidence
from mqnet.loop.advance import advance
from mqnet.loop.learner import ActiveLearner
from mqnet.numerics.ranking import top_n
from mqnet.oracles.simulated import NoisyOracle, SimulatedOracle, Truth
from mqnet.registry import STRATEGY, Entry
from mqnet.strategies.base import Ranking
from mqnet.types import SKIP, Selection

CLASSES = ("cat", "dog", "eel")
RNG = np.random.Generator(np.random.PCG64(7))
LABELS = RNG.integers(-1, 3, size=60)
VECTORS = (RNG.normal(size=(60, 5)) + 2 * np.eye(5)[LABELS]).astype(np.float32)
POOL = ArrayPool(VECTORS)
ORACLE = SimulatedOracle(Truth(POOL.ids, LABELS, CLASSES))


class Remembering(Ranking):
    """Confidence plus something learned, so that state and snapshot matter."""

    needs = frozenset({"logits"})

    def __init__(self) -> None:
        self.weight = torch.zeros(3)

    def select(self, view, n, key) -> Selection:
        logits = view.column("logits")
        scores = confidence(view) + logits @ self.weight + 0.01 * torch.from_numpy(key.uniform(view.ids.hashes()))
        rows = top_n(scores, n)
        return Selection(rows, scores[rows], {"logits": logits[rows]}, {"weight": self.weight})

    def learn(self, feedback, key) -> None:
        last = feedback[-1]
        if len(last.answers):
            noise = torch.randn(3, generator=key.torch())
            self.weight = (last.snapshot["logits"] * last.answers[:, None]).mean(0) + noise + last.constants["weight"]

    def state(self):
        return {"weight": self.weight}

    def restore(self, state) -> None:
        self.weight = state["weight"]


@pytest.fixture(autouse=True)
def _remembering(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    STRATEGY.names()
    monkeypatch.setitem(STRATEGY._entries, "remembering", Entry("strategy", "remembering", Remembering))
    with careless_disk():
        yield


def start(folder: Path, pool=POOL, **changes) -> ActiveLearner:
    options = {"budget": 7.0, "rounds": 2, "cost_ood": 2.0, "strategy": "remembering", "seed": 3, **changes}
    return ActiveLearner(
        pool, CLASSES, model={"name": "head", "hidden": 6, "n_steps": 4, "batch_size": 8}, folder=folder, **options
    )


def finish(learner: ActiveLearner, oracle=ORACLE) -> None:
    while advance(learner, oracle).state != "done":
        pass


class HalfOracle:
    """Answers the second half of what is open, skipping one item now and then: partial answers, replacement."""

    def collect(self, query):
        items = query.items[len(query.items) // 2 :]
        answers = dict(ORACLE.collect(query))
        return {item: SKIP if item.endswith("7") else answers[item] for item in items}


def everything(folder: Path) -> dict[str, object]:
    """All that a campaign came to, but for the time it took."""
    with ActiveLearner.open(folder, POOL) as learner:
        records = learner.store.rounds()
        digests = {d for r in records for d in (r.model, r.snapshot, r.state_before, r.state_after) if d}
        return {
            "ledger": learner.ledger,
            "history": learner.store.history(),
            "scores": [learner.store.scores(r.round) for r in records],
            "rounds": [
                (r.round, r.budget, r.closed, r.model, r.snapshot, r.state_before, r.state_after) for r in records
            ],
            "arrays": {d: (folder / "arrays" / d[:2] / f"{d}.safetensors").read_bytes() for d in digests},
            "model": {name: tensor.numpy().tobytes() for name, tensor in learner.fitted().state().items()},
        }


def run_and_count(folder: Path, oracle) -> int:
    with Death().staged() as death, start(folder) as learner:
        finish(learner, oracle)
    return death.n_writes


@pytest.mark.parametrize("oracle", [ORACLE, HalfOracle()], ids=["whole", "partial"])
def test_death_at_any_write_changes_nothing(tmp_path: Path, oracle) -> None:
    n_writes = run_and_count(tmp_path / "undisturbed", oracle)
    expected = everything(tmp_path / "undisturbed")
    assert len(expected["rounds"]) == 3
    assert all(closed for _, _, closed, *_ in expected["rounds"])
    assert n_writes > 12
    for at in range(n_writes):
        # before a write is after the one before it; the partial campaign has many more writes of the same kinds
        for when in ("within", "after") if oracle is ORACLE else (MOMENTS[at % 3],):
            folder = tmp_path / f"{at} {when}"
            learner = None
            try:
                with Death(at, when).staged():
                    learner = start(folder)
                    finish(learner, oracle)
            except Died:
                if learner is not None:
                    abandon(learner)
            else:
                raise AssertionError(f"there was no write {at}")
            with start(folder) as learner:
                finish(learner, oracle)
            assert everything(folder) == expected, f"after death {when} write {at}"


def test_one_death_after_another(tmp_path: Path) -> None:
    run_and_count(tmp_path / "undisturbed", ORACLE)
    for deaths in range(200):
        learner = None
        try:
            with Death(deaths % 3, MOMENTS[deaths % 2 + 1]).staged():
                learner = start(tmp_path / "dying")
                finish(learner)
            learner.close()
            break
        except Died:
            if learner is not None:
                abandon(learner)
    assert deaths > 5
    assert everything(tmp_path / "dying") == everything(tmp_path / "undisturbed")


def test_requeued_and_corrected_items_survive(tmp_path: Path) -> None:
    with start(tmp_path / "a") as learner:
        query = learner.ask()
        learner.tell({query.items[0]: SKIP, query.items[1]: SKIP})
        learner.requeue(query.items[:1])
        assert learner.ask().items[0] == query.items[0]
        finish(learner)
    with start(tmp_path / "a") as learner:
        assert learner.ask() is None
        learner.tell({query.items[1]: "cat"})
        assert learner.ledger[1].answer.name == "cat"
        assert learner.spent == sum(line.cost for line in learner.ledger)


# -- the same campaign elsewhere


def test_a_copied_folder_goes_on(tmp_path: Path) -> None:
    run_and_count(tmp_path / "undisturbed", ORACLE)
    with start(tmp_path / "here") as learner:
        for _ in range(2):
            advance(learner, ORACLE)
        # copied while it is open, as a backup does
        shutil.copytree(tmp_path / "here", tmp_path / "there")
    with ActiveLearner.open(tmp_path / "there", POOL) as learner:
        finish(learner)
    assert everything(tmp_path / "there") == everything(tmp_path / "undisturbed")


def test_a_pool_is_found_by_its_path_and_re_pointed_by_its_content(tmp_path: Path) -> None:
    file, moved = tmp_path / "pool.npy", tmp_path / "moved.npy"
    np.save(file, VECTORS)
    with start(tmp_path / "campaign", file) as learner:
        query = learner.ask()
    with ActiveLearner.open(tmp_path / "campaign") as learner:
        assert learner.ask() == query
    file.rename(moved)
    with pytest.raises(PoolError, match=r"pool\.npy' does not exist"):
        ActiveLearner.open(tmp_path / "campaign")
    with ActiveLearner.open(tmp_path / "campaign", moved) as learner:
        assert learner.ask() == query
    with ActiveLearner.open(tmp_path / "campaign") as learner:
        assert learner.store.pool()["path"] == str(moved)


@pytest.mark.parametrize("change", ["a value", "an item less", "other ids", "another type"])
def test_another_pool_is_refused(tmp_path: Path, change: str) -> None:
    with start(tmp_path) as learner:
        learner.ask()
    other = {
        "a value": lambda: ArrayPool(
            np.where(np.arange(60)[:, None] == 59, VECTORS + 1e-3, VECTORS).astype(np.float32)
        ),
        "an item less": lambda: ArrayPool(VECTORS[:-1]),
        "other ids": lambda: ArrayPool(VECTORS, [f"x{i}" for i in range(60)]),
        "another type": lambda: ArrayPool(VECTORS.astype(np.float64)),
    }[change]()
    with pytest.raises(PoolError, match="not the pool of the campaign"):
        start(tmp_path, other)
    with start(tmp_path) as learner:
        assert learner.ask() is not None


def test_a_pool_in_memory_must_be_given_again(tmp_path: Path) -> None:
    start(tmp_path).close()
    with pytest.raises(PoolError, match="pass it again"):
        ActiveLearner.open(tmp_path)


def test_other_arguments_are_refused_equal_ones_are_not(tmp_path: Path) -> None:
    start(tmp_path).close()
    start(tmp_path, budget=7, cost_ood=2).close()  # whole numbers, the same campaign
    with pytest.raises(StoreError, match="another configuration"):
        start(tmp_path, seed=4)


def test_a_second_loop_is_refused(tmp_path: Path) -> None:
    with start(tmp_path), pytest.raises(BusyError, match="process"):
        start(tmp_path)
    start(tmp_path).close()


def test_noise_does_not_depend_on_interruptions(tmp_path: Path) -> None:
    from mqnet.rng import Key

    oracle = NoisyOracle(ORACLE.truth, 0.4, 0.4, Key(1))
    with start(tmp_path / "one") as learner:
        finish(learner, oracle)
    while True:
        with start(tmp_path / "many") as learner:
            query = learner.ask()
            if query is None:
                break
            learner.tell({query.items[-1]: oracle.collect(query)[query.items[-1]]})
    one, many = everything(tmp_path / "one"), everything(tmp_path / "many")
    assert {**one, "history": 0} == {**many, "history": 0}
