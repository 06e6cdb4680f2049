"""What every item probably is: a class, how sure that is, and whether it is none of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import torch
from torch import Tensor

from mqnet.data.pools import ArrayPool
from mqnet.errors import InputError, PoolError
from mqnet.ids import ItemIds
from mqnet.loop.learner import ActiveLearner
from mqnet.loop.rounds import Labelled, labelled_from
from mqnet.models.base import FittedModel
from mqnet.models.encode import CHUNK, Watcher
from mqnet.project.sorter import Sorter, fit_sorter
from mqnet.project.tables import Rows, write_rows
from mqnet.rng import Key
from mqnet.server.annotations import NONE_OF_THESE
from mqnet.types import Pool

LOGITS = frozenset({"logits"})


@dataclass(frozen=True)
class Predictor:
    """A campaign's model of all answers, with the sorter that calls junk by its name."""

    classes: tuple[str, ...]
    model: FittedModel
    sorter: Sorter
    dim: int

    def predict(self, vectors: Tensor) -> Predictions:
        """What the items of these vectors [n, D] probably are."""
        if vectors.shape[1] != self.dim:
            raise PoolError(
                f"the items have vectors of {vectors.shape[1]} numbers, the campaign's have {self.dim}: "
                "they must come from the same encoder."
            )
        confidence, classes = self.model.encode(vectors, LOGITS)["logits"].float().softmax(dim=1).max(dim=1)
        junk = self.sorter.probability(vectors)
        return Predictions(classes, confidence, junk, junk > self.sorter.threshold)


@dataclass(frozen=True)
class Predictions:
    """Per item: the most likely known class, its probability among the known ones, that of OOD, and the verdict."""

    classes: Tensor  # [n]
    confidence: Tensor  # [n]
    junk: Tensor  # [n]
    is_junk: Tensor  # [n]

    def counts(self, n_classes: int) -> list[int]:
        """How many items are predicted as each class, and last as none of them."""
        verdict = torch.where(self.is_junk, n_classes, self.classes)
        return torch.bincount(verdict, minlength=n_classes + 1).tolist()


def predictor(learner: ActiveLearner) -> Predictor:
    """The model and the sorter of all answers given so far; without an answer that names a class it is an error."""
    lines = learner.ledger
    labelled = labelled_from(learner.pool, lines, learner.config.classes)
    if not (labelled.answers >= 0).any():
        raise InputError("no answer names a known class yet: there is nothing to learn a model from. Label some items.")
    return Predictor(learner.config.classes, learner.fitted(), sorter_of(learner, labelled), _dim(learner.pool))


def sorter_of(learner: ActiveLearner, labelled: Labelled) -> Sorter:
    """The sorter of these answers; its randomness is keyed by the campaign's seed and the number of rounds."""
    key = Key(learner.config.seed).child("round", len(learner.store.rounds()))
    vectors = learner.pool.load(labelled.ids)
    return fit_sorter(labelled.ids, vectors, torch.from_numpy(labelled.answers), len(learner.config.classes), key)


def tables_of(
    found: Predictor, pool: Pool, ids: ItemIds, answers: dict[str, str], watch: Watcher | None = None
) -> Iterator[Rows]:
    """Predictions of these items as tables, a chunk at a time; `answers` holds what people said of some of them."""
    names = pa.array([*found.classes, NONE_OF_THESE])
    for piece, some in ids.chunks(CHUNK):
        predicted = found.predict(pool.load(some))
        verdict = torch.where(predicted.is_junk, len(found.classes), predicted.classes)
        items = list(some)
        yield pa.table(
            {
                "item": items,
                "prediction": names.take(pa.array(verdict.numpy())),
                "confidence": predicted.confidence.numpy(),
                "class": names.take(pa.array(predicted.classes.numpy())),
                "none_of_these": predicted.junk.numpy(),
                "answer": pa.array([answers.get(item) for item in items], pa.string()),
            }
        )
        if watch is not None:
            watch(piece.stop, len(ids))


@dataclass(frozen=True)
class Predicted:
    """What `predict_to` wrote."""

    out: Path
    n_items: int
    counts: dict[str, int]
    threshold: float
    threshold_how: str

    def json(self) -> str:
        """One JSON object."""
        return json.dumps(
            {
                "out": str(self.out),
                "items": self.n_items,
                "counts": self.counts,
                "threshold": self.threshold,
                "threshold_how": self.threshold_how,
            }
        )


def predict_to(
    out: Path, found: Predictor, pool: Pool, ids: ItemIds, answers: dict[str, str], watch: Watcher | None = None
) -> Predicted:
    """Write the predictions of these items as CSV, JSONL or Parquet, as the name of `out` says."""
    counts = dict.fromkeys([*found.classes, NONE_OF_THESE], 0)

    def counted() -> Iterator[Rows]:
        for table in tables_of(found, pool, ids, answers, watch):
            for entry in table.column("prediction").value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
            yield table

    write_rows(out, counted())
    return Predicted(out, len(ids), counts, found.sorter.threshold, found.sorter.how)


def _dim(pool: Pool) -> int:
    return pool.dim if isinstance(pool, ArrayPool) else int(pool.load(pool.ids.take(slice(0, 1))).shape[1])
