"""Any registered strategy inside somebody else's loop, in the manner of scikit-activeml: `query(X, y, clf)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from mqnet.errors import InputError, PluginError
from mqnet.ids import ItemIds, RowNames
from mqnet.loop.rounds import check_selection
from mqnet.models.base import INPUT_COLUMNS
from mqnet.registry import STRATEGY
from mqnet.rng import Key
from mqnet.strategies.base import Strategy
from mqnet.types import Arrays, Costs, Feedback
from mqnet.view import OOD_CLASS, LabelledView, RoundView


class ProbabilisticClassifier(Protocol):
    """A fitted classifier: `classes_` and `predict_proba`."""

    classes_: Any

    def predict_proba(self, X: Any) -> Any:  # the name every scikit-learn classifier uses
        """Class probabilities [n, K]."""
        ...


class QueryStrategy:
    """Ask which rows of `X` to label next, from labels `y` and a classifier you fitted yourself.

    `y` holds a class for labelled rows, `ood_label` for junk and `missing_label` for the rest. What the last query's
    labels teach is learned when the next one is asked.
    """

    def __init__(
        self,
        strategy: str = "mqnet",
        *,
        ood_label: object = -1,
        missing_label: object = np.nan,
        seed: int = 0,
        cost_known: float = 1.0,
        cost_ood: float = 1.0,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.name = strategy
        self.strategy: Strategy = STRATEGY.make(strategy, options)
        unknown = self.strategy.needs - INPUT_COLUMNS - {"logits"}
        if unknown:
            raise PluginError(
                f"strategy '{strategy}' needs {', '.join(sorted(unknown))}, which a classifier's probabilities and X "
                "do not hold. Choose other scores for it."
            )
        self.ood_label, self.missing_label, self.seed = ood_label, missing_label, seed
        self.costs = Costs(cost_known, cost_ood)
        self._asked: list[tuple[NDArray[np.int64], Arrays, Arrays]] = []

    def query(
        self,
        X: ArrayLike,  # the names scikit-learn's users expect
        y: ArrayLike,
        clf: ProbabilisticClassifier,
        *,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Rows of `X` to label, best first [batch_size]; with `return_utilities` also their scores."""
        vectors, labels = np.asarray(X), np.asarray(y, dtype=object)
        if vectors.ndim != 2 or len(vectors) != len(labels):
            raise InputError(
                f"X has shape {vectors.shape} and y {labels.shape}: expected a row of X for each entry of y."
            )
        answers, missing = self._answers(labels, list(np.asarray(clf.classes_).tolist()))
        if missing.all():
            raise InputError("y holds no label yet: ask for a random sample first.")
        key = Key(self.seed).child("query", len(self._asked))
        feedback = [self._feedback(r, *asked, answers, missing) for r, asked in enumerate(self._asked, 1)]
        if feedback:
            self.strategy.learn(feedback, key.child("learn"))
        view = self._view(vectors, answers, missing, clf, key)
        selection = self.strategy.select(view, batch_size, key.child("select"))
        check_selection(selection, view, batch_size, self.name)
        rows = np.flatnonzero(missing)[selection.rows.numpy()]
        self._asked.append((rows, selection.snapshot, selection.constants))
        return (rows, selection.scores.numpy()) if return_utilities else rows

    def _answers(self, labels: NDArray[Any], classes: list[object]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        nan = isinstance(self.missing_label, float) and np.isnan(self.missing_label)
        missing = np.asarray([v is None or v != v if nan else v == self.missing_label for v in labels.tolist()])
        number = {name: i for i, name in enumerate(classes)} | {self.ood_label: OOD_CLASS}
        answers = np.full(len(labels), OOD_CLASS, dtype=np.int64)
        for row in np.flatnonzero(~missing).tolist():
            if labels[row] not in number:
                raise InputError(f"y[{row}] is {labels[row]!r}: neither a class of the classifier nor the OOD label.")
            answers[row] = number[labels[row]]
        return answers, missing

    def _feedback(
        self, round_: int, rows: NDArray[np.int64], snapshot: Arrays, constants: Arrays, answers: Any, missing: Any
    ) -> Feedback:
        used = torch.from_numpy(np.flatnonzero(~missing[rows]))
        chosen = rows[used.numpy()]
        kept = {name: column[used] for name, column in snapshot.items()}
        return Feedback(round_, tuple(map(str, chosen.tolist())), torch.from_numpy(answers[chosen]), kept, constants)

    def _view(self, vectors: Any, answers: Any, missing: Any, clf: ProbabilisticClassifier, key: Key) -> RoundView:
        every = ItemIds(RowNames(len(vectors)))
        parts: list[tuple[ItemIds, Arrays]] = []
        for rows in (np.flatnonzero(missing), np.flatnonzero(~missing)):
            inputs = torch.from_numpy(np.ascontiguousarray(vectors[rows], dtype=np.float32))
            columns: Arrays = dict.fromkeys(self.strategy.needs & INPUT_COLUMNS, inputs)
            if len(rows):
                probabilities = np.asarray(clf.predict_proba(vectors[rows]), dtype=np.float64)
                columns["logits"] = torch.from_numpy(np.log(probabilities.clip(1e-12))).float()
            else:
                columns["logits"] = torch.empty(0, len(clf.classes_))
            parts.append((every.take(rows), columns))
        (ids, columns), (labelled_ids, labelled) = parts
        return RoundView(
            ids=ids,
            columns=columns,
            labelled=LabelledView(labelled_ids, labelled, torch.from_numpy(answers[~missing])),
            n_classes=len(clf.classes_),
            round=len(self._asked) + 1,
            key=key,
            costs=self.costs,
        )
