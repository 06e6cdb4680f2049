"""Every strategy the paper compares with, once more and the obvious way: from a round's view to the rows picked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from benchmarks.reference.kcentre import k_centre_plain
from benchmarks.reference.kmeanspp import k_means_plus_plus_plain
from benchmarks.reference.submodular import facility_location_cmi_value, greedy_plain, log_det_cmi_value
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import entropy as shannon
from sklearn.metrics.pairwise import cosine_similarity

from mqnet.models.head import HeadConfig, encode, fit_head
from mqnet.numerics.gradients import Factored, output_gradients
from mqnet.registry import INFORMATIVENESS, PURITY
from mqnet.rng import Key
from mqnet.view import RoundView

Array = NDArray[np.float64]
Reference = Callable[[RoundView, int, Key], list[int]]


def best_first(scores: Array, n: int, *tie_breakers: Array) -> list[int]:
    """Rows sorted by score, then by the tie breakers, then by row, which is the order of the ids."""
    return np.lexsort((np.arange(len(scores)), *(-t for t in reversed(tie_breakers)), -scores))[:n].tolist()


def column(view: RoundView, name: str) -> Array:
    return view.column(name).double().numpy()


def confidence(view: RoundView, n: int, key: Key) -> list[int]:
    return best_first(1.0 - softmax(column(view, "logits"), axis=1).max(1), n)


def margin(view: RoundView, n: int, key: Key) -> list[int]:
    p = np.sort(softmax(column(view, "logits"), axis=1), axis=1)
    return best_first(p[:, -2] - p[:, -1] if p.shape[1] > 1 else np.zeros(len(p)), n)


def entropy(view: RoundView, n: int, key: Key) -> list[int]:
    # rounded: a tie must stay one in whatever order the classes are summed
    return best_first(np.round(shannon(softmax(column(view, "logits"), axis=1), axis=1), 14), n)


def ll(view: RoundView, n: int, key: Key) -> list[int]:
    return best_first(column(view, "predicted_loss"), n)


def coreset(view: RoundView, n: int, key: Key) -> list[int]:
    return k_centre_plain(view.column("features"), view.labelled.column("features")[view.labelled.known], n)


def badge(view: RoundView, n: int, key: Key) -> list[int]:
    return k_means_plus_plus_plain(output_gradients(view.column("logits")), view.column("features"), n, key.torch())


def ccal(view: RoundView, n: int, key: Key) -> list[int]:
    """Per class `tanh(k/2 (s_sem - t)) + 1 - minmax(s_dis)`; classes take turns, each its best item left."""
    known, answers = view.labelled.known.numpy(), view.labelled.answers.numpy()
    if not known.any() or not len(view):
        return list(range(min(n, len(view))))

    def minmax(values: Array) -> Array:
        spread = values.max() - values.min()
        return (values - values.min()) / (spread or 1.0)

    def largest(name: str, which: NDArray[np.bool_]) -> Array:
        if not which.any():
            return np.full(len(view), -1.0)
        return cosine_similarity(column(view, name), view.labelled.column(name).double().numpy()[which]).max(1)

    semantic = np.tanh(50.0 * (minmax(largest("contrastive_semantic", known)) - 0.9))
    scores = [semantic + 1.0 - minmax(largest("contrastive", known & (answers == i))) for i in range(view.n_classes)]
    left, picks = set(range(len(view))), []
    while left and len(picks) < n:
        for values in scores:
            if left and len(picks) < n:
                picks.append(min(left, key=lambda row: (-values[row], row)))
                left.remove(picks[-1])
    return picks


def similar(view: RoundView, n: int, key: Key, objective: str = "logdetcmi") -> list[int]:
    """Plain greedy on explicit kernels; the head is the strategy's own, since it is not what is compared."""
    known, answers = view.labelled.known, view.labelled.answers
    if not bool(known.any()):
        return list(range(min(n, len(view))))
    outputs = view.n_classes + int(not bool(known.all()))
    labels, labelled = torch.where(known, answers, view.n_classes), view.labelled.column("embedding")
    head = fit_head(labelled, labels, outputs, HeadConfig(loss_prediction="off"), key.child("head").torch())

    def factors(rows: torch.Tensor, true: torch.Tensor | None) -> Factored:
        encoded = encode(head, rows)
        return Factored(output_gradients(encoded["logits"], true), encoded["features"])

    pool, query = factors(view.column("embedding"), None), factors(labelled[known], labels[known])
    private = factors(labelled[~known], labels[~known])
    value = log_det_cmi_value if objective == "logdetcmi" else facility_location_cmi_value
    return greedy_plain(lambda rows: value(pool, query, private, rows), len(view), n)


def combined(rule: str) -> Reference:
    """`sum` or `product` of exp of the clipped z-scores of knn and confidence; ties by the unclipped ones."""

    def pick(view: RoundView, n: int, key: Key) -> list[int]:
        scores = (PURITY.score("knn")(view), INFORMATIVENESS.score("confidence")(view))
        z = [_zscore(score.double().numpy()) for score in scores]
        p, i = (np.exp(values.clip(-4.0, 4.0)) for values in z)
        return best_first(p + i if rule == "sum" else p * i, n, z[0] + z[1])

    return pick


def _zscore(values: Array) -> Array:
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


STRATEGIES: Mapping[str, Reference] = {
    "confidence": confidence, "margin": margin, "entropy": entropy, "ll": ll, "coreset": coreset, "badge": badge,
    "ccal": ccal, "similar": similar, "sum": combined("sum"), "product": combined("product"),
}  # fmt: skip
