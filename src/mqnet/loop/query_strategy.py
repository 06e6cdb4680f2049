"""Any registered strategy inside somebody else's loop, called as scikit-activeml's are: `query(X, y, clf, ...)`."""

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
    """A classifier in the manner of scikit-learn; `fit` is called on a clone, and only where it is asked for."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and their classes; sets `classes_`."""
        ...

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
        X: ArrayLike,  # the names and the order that scikit-activeml's users expect
        y: ArrayLike,
        clf: ProbabilisticClassifier,
        fit_clf: bool = True,
        sample_weight: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Rows of `X` to label, best first [batch_size].

        A clone of `clf` is fitted to the rows with a known class, junk left out; with `fit_clf=False` it is taken as it
        is. `candidates`: rows of `X` that may be asked, by default all unlabelled ones. With `return_utilities` also
        scores [batch_size, len(X)]: line i holds those of the rows picked from place i on, NaN elsewhere.
        """
        vectors, labels = np.asarray(X), np.asarray(y, dtype=object)
        if vectors.ndim != 2 or labels.shape != (len(vectors),):
            raise InputError(
                f"X has shape {vectors.shape} and y {labels.shape}: expected a row of X for each entry of y."
            )
        missing = self._missing(labels)
        if missing.all():
            raise InputError("y holds no label yet: ask for a random sample first.")
        model = self._fitted(clf, vectors, np.asarray(y), labels, missing, sample_weight) if fit_clf else clf
        classes: list[object] = np.asarray(getattr(model, "classes_")).tolist()  # noqa: B009 - set by fitting alone
        answers = self._answers(labels, missing, classes)
        pool = np.flatnonzero(missing) if candidates is None else _candidates(candidates, missing)
        key = Key(self.seed).child("query", len(self._asked))
        feedback = [self._feedback(r, *asked, answers, missing) for r, asked in enumerate(self._asked, 1)]
        if feedback:
            self.strategy.learn(feedback, key.child("learn"))
        view = self._view(vectors, answers, pool, np.flatnonzero(~missing), model, len(classes), key)
        selection = self.strategy.select(view, batch_size, key.child("select"))
        check_selection(selection, view, batch_size, self.name)
        rows = pool[selection.rows.numpy()]
        self._asked.append((rows, selection.snapshot, selection.constants))
        return (rows, _utilities(rows, selection.scores.numpy(), len(vectors))) if return_utilities else rows

    def _missing(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        nan = isinstance(self.missing_label, float) and np.isnan(self.missing_label)
        return np.asarray([v is None or v != v if nan else v == self.missing_label for v in labels.tolist()], bool)

    def _fitted(
        self, clf: Any, vectors: Any, y: Any, labels: Any, missing: NDArray[np.bool_], sample_weight: ArrayLike | None
    ) -> ProbabilisticClassifier:
        from sklearn.base import clone

        known = ~missing & np.asarray([v != self.ood_label for v in labels.tolist()], bool)
        if not known.any():
            raise InputError("y holds no label of a known class yet: ask for a random sample first.")
        weights = () if sample_weight is None else (np.asarray(sample_weight)[known],)
        model: Any = clone(clf)
        return model.fit(vectors[known], y[known], *weights)

    def _answers(self, labels: NDArray[Any], missing: NDArray[np.bool_], classes: list[object]) -> NDArray[np.int64]:
        number = {name: i for i, name in enumerate(classes)} | {self.ood_label: OOD_CLASS}
        answers = np.full(len(labels), OOD_CLASS, dtype=np.int64)
        for row in np.flatnonzero(~missing).tolist():
            if labels[row] not in number:
                raise InputError(f"y[{row}] is {labels[row]!r}: neither a class of the classifier nor the OOD label.")
            answers[row] = number[labels[row]]
        return answers

    def _feedback(
        self, round_: int, rows: NDArray[np.int64], snapshot: Arrays, constants: Arrays, answers: Any, missing: Any
    ) -> Feedback:
        used = torch.from_numpy(np.flatnonzero(~missing[rows]))
        chosen = rows[used.numpy()]
        kept = {name: column[used] for name, column in snapshot.items()}
        return Feedback(round_, tuple(map(str, chosen.tolist())), torch.from_numpy(answers[chosen]), kept, constants)

    def _view(
        self,
        vectors: NDArray[Any],
        answers: NDArray[np.int64],
        pool: NDArray[np.int64],
        bought: NDArray[np.int64],
        model: ProbabilisticClassifier,
        n_classes: int,
        key: Key,
    ) -> RoundView:
        every = ItemIds(RowNames(len(vectors)))
        parts: list[tuple[ItemIds, Arrays]] = []
        for rows in (pool, bought):
            inputs = torch.from_numpy(np.ascontiguousarray(vectors[rows], dtype=np.float32))
            columns: Arrays = dict.fromkeys(self.strategy.needs & INPUT_COLUMNS, inputs)
            if len(rows):
                probabilities = np.asarray(model.predict_proba(vectors[rows]), dtype=np.float64)
                columns["logits"] = torch.from_numpy(np.log(probabilities.clip(1e-12))).float()
            else:
                columns["logits"] = torch.empty(0, n_classes)
            parts.append((every.take(rows), columns))
        (ids, columns), (labelled_ids, labelled) = parts
        return RoundView(
            ids=ids,
            columns=columns,
            labelled=LabelledView(labelled_ids, labelled, torch.from_numpy(answers[bought])),
            n_classes=n_classes,
            round=len(self._asked) + 1,
            key=key,
            costs=self.costs,
        )


def _candidates(candidates: ArrayLike, missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rows that may be asked, in ascending order: what a view's ids are sorted by."""
    rows = np.asarray(candidates)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise InputError(
            f"candidates is an array of {rows.dtype} of shape {rows.shape}: give row numbers of X. Rows that X does "
            "not hold cannot be asked, since their labels would have no place in y."
        )
    rows = np.unique(rows.astype(np.int64))
    if len(rows) and (rows[0] < 0 or rows[-1] >= len(missing)):
        raise InputError(f"candidates holds row {rows[0] if rows[0] < 0 else rows[-1]}; X has {len(missing)} rows.")
    if not missing[rows].all():
        raise InputError(f"candidates holds row {rows[~missing[rows]][0]}, which y has a label for.")
    return rows


def _utilities(rows: NDArray[np.int64], scores: NDArray[Any], n: int) -> NDArray[np.float64]:
    utilities = np.full((len(rows), n), np.nan)
    for place in range(len(rows)):
        utilities[place, rows[place:]] = scores[place:]
    return utilities
