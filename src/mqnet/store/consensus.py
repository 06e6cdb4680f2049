"""Several answers to one item: what they come to, and how far they can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mqnet.types import SKIP, Answer, ItemId

REVIEW = "review"
"""The view in which an owner decides: the last answer given there settles an item."""


@dataclass(frozen=True)
class Vote:
    """One person's present answer to an item."""

    item: ItemId
    annotator: str
    answer: Answer
    view: str = "focus"
    answered_at: float = 0.0


def decide(votes: Sequence[Vote], overlap: int) -> Answer | None:
    """What an item's votes (oldest first) come to: the owner's word, else the most frequent of at least `overlap`.

    None while votes are missing and where the lead is shared: one more person is asked, or the owner reviews.
    """
    reviewed = [vote for vote in votes if vote.view == REVIEW]
    if reviewed:
        return reviewed[-1].answer
    if len(votes) < overlap:
        return None
    leading = Counter(vote.answer for vote in votes).most_common(2)
    return None if len(leading) == 2 and leading[0][1] == leading[1][1] else leading[0][0]


def agreement(votes: Sequence[Vote], annotator: str | None = None) -> float | None:
    """The share of equal answers among all pairs of people who answered the same item; None without such a pair.

    With an annotator, among the pairs they are part of.
    """
    by_item: dict[ItemId, list[Vote]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote)
    n_equal = n_pairs = 0
    for group in by_item.values():
        for one, other in combinations(group, 2):
            if annotator is None or annotator in (one.annotator, other.annotator):
                n_equal += one.answer == other.answer
                n_pairs += 1
    return n_equal / n_pairs if n_pairs else None


@dataclass(frozen=True)
class Opinion:
    """What Dawid and Skene's model makes of votes: each item's likeliest answer and its probability, and how often
    each annotator is right."""

    answers: dict[ItemId, tuple[Answer, float]]
    reliability: dict[str, float]


def dawid_skene(votes: Sequence[Vote], *, n_steps: int = 50, smoothing: float = 0.1) -> Opinion:
    """Dawid and Skene (1979): EM over true answers and one confusion matrix per annotator.

    `p(t | votes) ~ prior[t] * prod_a confusion[a, t, vote_a]`. Skips say nothing about the truth and are left out. The
    smoothing, added to every count, keeps an annotator of few votes from certainty. Cost: votes x answers per step.
    """
    used = [vote for vote in votes if vote.answer is not SKIP]
    if not used:
        return Opinion({}, {})
    items, people = sorted({v.item for v in used}), sorted({v.annotator for v in used})
    answers = sorted({v.answer for v in used}, key=repr)
    item, person, said = (
        np.asarray([number[key(vote)] for vote in used])
        for number, key in (
            ({name: i for i, name in enumerate(items)}, lambda v: v.item),
            ({name: i for i, name in enumerate(people)}, lambda v: v.annotator),
            ({name: i for i, name in enumerate(answers)}, lambda v: v.answer),
        )
    )
    truth = np.zeros((len(items), len(answers)))
    np.add.at(truth, (item, said), 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    confusion = _confusion(truth, item, person, said, len(people), smoothing)
    for _ in range(n_steps):
        prior = truth.mean(axis=0) + 1e-12
        logs = np.tile(np.log(prior), (len(items), 1))
        np.add.at(logs, item, np.log(confusion[person, :, said]))
        logs -= logs.max(axis=1, keepdims=True)
        updated = np.exp(logs)
        updated /= updated.sum(axis=1, keepdims=True)
        moved = float(np.abs(updated - truth).max())
        truth = updated
        confusion = _confusion(truth, item, person, said, len(people), smoothing)
        if moved < 1e-6:
            break
    best = truth.argmax(axis=1)
    right = np.zeros(len(people))
    np.add.at(right, person, truth[item, said])
    n_votes = np.bincount(person, minlength=len(people))
    return Opinion(
        {name: (answers[best[i]], float(truth[i, best[i]])) for i, name in enumerate(items)},
        {name: float(right[i] / n_votes[i]) for i, name in enumerate(people)},
    )


def _confusion(
    truth: NDArray[np.float64],
    item: NDArray[np.int64],
    person: NDArray[np.int64],
    said: NDArray[np.int64],
    n_people: int,
    smoothing: float,
) -> NDArray[np.float64]:
    """How often each person [A] says each answer where another is true: [A, true, said], rows of ones."""
    counts = np.full((n_people, truth.shape[1], truth.shape[1]), smoothing)
    np.add.at(counts, (person, said), truth[item])
    return (counts / counts.sum(axis=1, keepdims=True)).swapaxes(1, 2)
