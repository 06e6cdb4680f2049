"""The threshold for "none of these", by hand and on scenes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator

from mqnet.data.pools import ArrayPool
from mqnet.errors import InputError, PoolError
from mqnet.ids import ItemIds
from mqnet.loop.learner import ActiveLearner
from mqnet.models.base import TrainingSet
from mqnet.models.mlp import MlpHead
from mqnet.project.model_file import Preprocessing, read_model, write_model
from mqnet.project.predict import NONE_OF_THESE, Predictor, predict_to, predictor
from mqnet.project.sorter import choose_threshold, fit_sorter
from mqnet.rng import Key
from mqnet.types import OOD, SKIP

RNG = np.random.Generator(np.random.PCG64(3))


def blobs(n: int, *, dim: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors around three corners, n each: classes 0 and 1, and junk (-1)."""
    corners = np.eye(dim)[:3] * 4
    vectors = np.concatenate([RNG.normal(size=(n, dim)) * 0.5 + corner for corner in corners]).astype(np.float32)
    return torch.from_numpy(vectors), torch.repeat_interleave(torch.tensor([0, 1, -1]), n)


@pytest.mark.parametrize(
    ("probability", "known", "expected"),
    [
        ([0.1, 0.2, 0.6, 0.9], [True, True, False, False], (0.4, 1.0, 1.0)),
        ([0.1, 0.8, 0.6, 0.9], [True, True, False, False], (0.35, 0.5, 1.0)),  # ties: the cut in the widest gap
        ([0.3, 0.3, 0.3], [True, False, False], (0.65, 1.0, 0.0)),  # nothing can be told: everything is kept
        ([0.9, 0.9, 0.2], [False, True, True], (0.55, 0.5, 1.0)),
    ],
)
def test_the_threshold_by_hand(probability, known, expected) -> None:
    found = choose_threshold(torch.tensor(probability), torch.tensor(known))
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_threshold_is_the_best_of_all_cuts() -> None:
    probability, known = torch.from_numpy(RNG.random(80).round(1)), torch.from_numpy(RNG.random(80) < 0.6)
    threshold, kept, caught = choose_threshold(probability, known)
    scores = {}
    for cut in np.linspace(-0.05, 0.999, 400):
        below = probability <= cut
        scores[cut] = float(below[known].double().mean() + (~below)[~known].double().mean())
    assert kept + caught == pytest.approx(max(scores.values()))
    assert float((probability <= threshold)[known].double().mean()) == pytest.approx(kept)


def test_junk_far_from_the_classes_is_sorted_out() -> None:
    vectors, answers = blobs(20)
    ids = ItemIds.of([f"{i:02d}" for i in range(60)])
    sorter = fit_sorter(ids, vectors, answers, 2, Key(1))
    assert (sorter.n_known, sorter.n_ood) == (40, 20)
    assert sorter.kept is not None
    assert sorter.kept > 0.95
    new, truth = blobs(50)
    assert float(((sorter.probability(new) > sorter.threshold) == (truth < 0)).float().mean()) > 0.97
    again = fit_sorter(ids, vectors, answers, 2, Key(1))
    assert again.threshold == sorter.threshold


@pytest.mark.parametrize(("n_known", "n_ood", "threshold"), [(40, 0, 1.0), (40, 4, 0.5), (0, 5, 1.0)])
def test_too_few_answers_choose_no_threshold(n_known: int, n_ood: int, threshold: float) -> None:
    vectors, answers = blobs(20)
    rows = torch.tensor([*range(n_known), *range(40, 40 + n_ood)])
    ids = ItemIds.of([f"{i:02d}" for i in range(len(rows))])
    sorter = fit_sorter(ids, vectors[rows], answers[rows], 2, Key(1))
    assert (sorter.threshold, sorter.kept) == (threshold, None)
    if n_ood == 0:
        assert not (sorter.probability(vectors) > sorter.threshold).any()


def a_campaign(n: int = 30, **changes) -> ActiveLearner:
    vectors, truth = blobs(n)
    pool = ArrayPool(vectors.numpy(), [f"i{row:03d}" for row in range(3 * n)])
    learner = ActiveLearner(pool, ["cat", "dog"], budget=30, rounds=1, strategy="random", seed=2, **changes)
    for _ in range(2):
        query = learner.ask()
        assert query is not None
        learner.tell({item: ("cat", "dog", OOD)[int(truth[int(item[1:])])] for item in query.items[:-1]})
        learner.tell({query.items[-1]: SKIP})
        learner.tell({item: ("cat", "dog", OOD)[int(truth[int(item[1:])])] for item in learner.store.offered().items})
    return learner


def test_an_exported_model_predicts_what_the_campaign_predicts(tmp_path: Path) -> None:
    learner = a_campaign()
    found = predictor(learner)
    out = tmp_path / "model"
    names = [path.name for path in write_model(out, found, Preprocessing("vector", None, 6))]
    assert names == ["model.safetensors", "model.onnx", "model.json"]
    vectors, truth = blobs(40)
    wanted = found.predict(vectors)
    assert float((torch.where(wanted.is_junk, -1, wanted.classes) == truth).float().mean()) > 0.95

    again, how = read_model(out)
    assert how == Preprocessing("vector", None, 6)
    assert again.classes == ("cat", "dog")
    assert again.sorter.how == found.sorter.how
    for name in ("classes", "confidence", "junk", "is_junk"):
        assert torch.equal(getattr(again.predict(vectors), name), getattr(wanted, name)), name

    session = ReferenceEvaluator(str(out / "model.onnx"))
    classes, confidence, junk, prediction = session.run(None, {"vectors": vectors.numpy()})
    assert classes.tolist() == wanted.classes.tolist()
    np.testing.assert_allclose(confidence, wanted.confidence.numpy(), atol=1e-5)
    np.testing.assert_allclose(junk, wanted.junk.numpy(), atol=1e-5)
    assert prediction.tolist() == torch.where(wanted.is_junk, 2, wanted.classes).tolist()


def test_without_junk_nothing_is_junk_in_any_format(tmp_path: Path) -> None:
    vectors, truth = blobs(10)
    model = MlpHead().fit(TrainingSet(vectors[:20], truth[:20], vectors[:0], 2), frozenset({"logits"}), Key(0))
    sorter = fit_sorter(ItemIds.of([str(i) for i in range(20)]), vectors[:20], truth[:20], 2, Key(0))
    found = Predictor(("a", "b"), model, sorter, 6)
    write_model(tmp_path, found, Preprocessing("vector", None, 6))
    *_, junk, prediction = ReferenceEvaluator(str(tmp_path / "model.onnx")).run(None, {"vectors": vectors.numpy()})
    assert not junk.any()
    assert prediction.max() < 2
    assert not read_model(tmp_path)[0].predict(vectors).is_junk.any()


def test_predictions_are_written_for_every_item(tmp_path: Path) -> None:
    learner = a_campaign()
    found = predictor(learner)
    done = predict_to(tmp_path / "p.jsonl", found, learner.pool, learner.pool.ids, {"i000": "cat"})
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["item"] for row in rows] == list(learner.pool.ids)
    assert set(rows[0]) == {"item", "prediction", "confidence", "class", "none_of_these", "answer"}
    assert {row["answer"] for row in rows} == {"cat", None}
    assert sum(done.counts.values()) == done.n_items == 90
    assert done.counts[NONE_OF_THESE] == sum(row["prediction"] == NONE_OF_THESE for row in rows) > 20
    for row in rows:
        assert (row["prediction"] == NONE_OF_THESE) == (row["none_of_these"] > found.sorter.threshold)
        assert row["prediction"] in (row["class"], NONE_OF_THESE)


def test_what_cannot_be_predicted_is_refused(tmp_path: Path) -> None:
    learner = a_campaign()
    found = predictor(learner)
    with pytest.raises(PoolError, match="vectors of 3 numbers, the campaign's have 6"):
        found.predict(torch.zeros(1, 3))
    with pytest.raises(InputError, match=r"not a table's name.*csv"):
        predict_to(tmp_path / "p.xls", found, learner.pool, learner.pool.ids, {})
    empty = ActiveLearner(learner.pool, ["cat"], budget=2)
    with pytest.raises(InputError, match="no answer names a known class yet"):
        predictor(empty)
    with pytest.raises(InputError, match="only the target model 'head'"):
        write_model(tmp_path, replace(found, model=object()), Preprocessing("vector", None, 6))
    with pytest.raises(InputError, match="holds no exported model"):
        read_model(tmp_path)
    assert list(tmp_path.iterdir()) == []
