"""scikit-activeml's query strategies in this loop: the same pools, seeds, first labels and target model.

The target model is ours: it hands its probabilities to strategies that ask a classifier (a committee is its dropout
passes), and its penultimate features to those that look at where items lie. These strategies know no "none of these":
items answered so are left out of what they see, as they are left out of the target model's training.
docs/results/other-libraries.md has what came of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from skactiveml.base import SkactivemlClassifier
from skactiveml.pool import Badge, CoreSet, QueryByCommittee, RandomSampling, TypiClust, UncertaintySampling

from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking, in_order
from mqnet.types import Selection
from mqnet.view import RoundView


class Told(SkactivemlClassifier):
    """A classifier that was trained elsewhere: an item is its row number, and its probabilities are looked up."""

    def __init__(self, probabilities: NDArray[np.float64], embeddings: NDArray[np.float32] | None = None) -> None:
        super().__init__(classes=list(range(probabilities.shape[1])), random_state=0)
        self.probabilities, self.embeddings = probabilities, embeddings
        self.classes_ = np.arange(probabilities.shape[1])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Told:
        return self

    def predict_proba(self, X: Any, return_embeddings: bool = False) -> Any:
        rows = np.asarray(X)[:, 0].astype(int)
        if return_embeddings:
            assert self.embeddings is not None
            return self.probabilities[rows], self.embeddings[rows]
        return self.probabilities[rows]


class Foreign(Ranking):
    """A strategy of scikit-activeml: subclasses make it, and say what it is given besides X and y."""

    columns: tuple[str, ...] = ("logits",)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self.columns)

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        """Places in X [n], most wanted first."""
        raise NotImplementedError

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        n = min(n, len(view))
        known = view.labelled.known
        X = np.concatenate([view.labelled.column(self.columns[-1])[known].float().numpy(),
                            view.column(self.columns[-1]).float().numpy()])  # fmt: skip
        X = X.reshape(len(X), -1)
        y = np.concatenate([view.labelled.answers[known].double().numpy(), np.full(len(view), np.nan)])
        candidates = np.arange(int(known.sum()), len(y))
        if n == 0:
            return in_order(torch.empty(0, dtype=torch.long))
        seed = int(key.numpy().integers(2**31))
        places = np.asarray(self.query(seed, X, y, view, candidates, n)) - candidates[0]
        return in_order(torch.from_numpy(places.astype(np.int64)))


def looked_up(view: RoundView, name: str = "logits") -> NDArray[np.float64]:
    """Probabilities of the labelled known items and the unlabelled ones, in the order of X."""
    known = view.labelled.known
    return torch.cat([view.labelled.column(name)[known], view.column(name)]).double().softmax(dim=-1).numpy()


def numbered(y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.arange(len(y), dtype=np.float64)[:, None]


@strategy("ska-random")
class Random(Foreign):
    """scikit-activeml: RandomSampling."""

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        return RandomSampling(random_state=seed).query(X, y, candidates=candidates, batch_size=n)


class Uncertainty(Foreign):
    """scikit-activeml: UncertaintySampling with the target model's probabilities."""

    method = ""

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        asked = UncertaintySampling(method=self.method, random_state=seed)
        clf = Told(looked_up(view))
        return asked.query(numbered(y), y, clf, fit_clf=False, candidates=candidates, batch_size=n)


@strategy("ska-confidence")
class LeastConfident(Uncertainty):
    """scikit-activeml: UncertaintySampling, least confident."""

    method = "least_confident"


@strategy("ska-margin")
class Margin(Uncertainty):
    """scikit-activeml: UncertaintySampling, smallest margin."""

    method = "margin_sampling"


@strategy("ska-entropy")
class Entropy(Uncertainty):
    """scikit-activeml: UncertaintySampling, largest entropy."""

    method = "entropy"


@strategy("ska-badge")
class SkaBadge(Foreign):
    """scikit-activeml: Badge with the target model's probabilities and penultimate features."""

    columns = ("logits", "features")

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        asked = Badge(clf_embedding_flag_name="return_embeddings", random_state=seed)
        return asked.query(numbered(y), y, Told(looked_up(view), X), fit_clf=False, candidates=candidates, batch_size=n)


@strategy("ska-coreset")
class SkaCoreSet(Foreign):
    """scikit-activeml: CoreSet on penultimate features."""

    columns = ("logits", "features")

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        return CoreSet(random_state=seed).query(X, y, candidates=candidates, batch_size=n)


@strategy("ska-typiclust")
class SkaTypiClust(Foreign):
    """scikit-activeml: TypiClust on the pool's own vectors (its clusters depend on how many are asked for)."""

    columns = ("logits", "embedding")

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        asked = TypiClust(random_state=seed, cluster_algo_dict={"random_state": seed, "n_init": 1})
        return asked.query(X, y, candidates=candidates, batch_size=n)


@strategy("ska-committee")
class Committee(Foreign):
    """scikit-activeml: QueryByCommittee, the target model's dropout passes as its members."""

    columns = ("logits", "mc_logits")

    def query(self, seed: int, X: Any, y: Any, view: RoundView, candidates: Any, n: int) -> NDArray[np.int64]:
        passes = looked_up(view, "mc_logits")
        members = [Told(passes[:, t]) for t in range(passes.shape[1])]
        asked = QueryByCommittee(random_state=seed)
        return asked.query(numbered(y), y, members, fit_ensemble=False, candidates=candidates, batch_size=n)
