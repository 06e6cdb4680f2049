"""Telling junk from known items once a campaign has answers, and the threshold above which an item is called junk."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.ids import ItemIds
from mqnet.models.head import Head, encode, fit_head
from mqnet.purity.detector import RECIPE
from mqnet.rng import Key

N_FOLDS = 5
FEWEST = 5
"""Answers of either kind below which no threshold is chosen: a handful says nothing about the next item."""
UNCHOSEN = 0.5


@dataclass(frozen=True)
class Sorter:
    """A head over the known classes and OOD as one more class, and the probability of OOD that means "none of these".

    `kept` and `caught` are the shares of known and of OOD answers that the threshold sorts rightly, each item judged by
    a head that had not seen it; None where no threshold was chosen. `how` says in a sentence how it was.
    """

    head: Head | None
    threshold: float
    how: str
    n_known: int
    n_ood: int
    kept: float | None = None
    caught: float | None = None

    def probability(self, vectors: Tensor) -> Tensor:
        """The probability of OOD [n] of these vectors [n, D]; zeros as long as nothing was answered OOD."""
        if self.head is None:
            return torch.zeros(len(vectors))
        return _probability(self.head, vectors)


def fit_sorter(ids: ItemIds, vectors: Tensor, answers: Tensor, n_classes: int, key: Key) -> Sorter:
    """The sorter of all answers: class numbers [n], negative for OOD, of items `ids` with vectors [n, D].

    The threshold maximises balanced accuracy, the mean of the shares of known and of OOD answers sorted rightly, over
    five folds of the answers. Balanced, since a strategy decides how much junk is among the answers: their share says
    nothing about the pool's. Ties go to the middle of the longest stretch.
    """
    known = answers >= 0
    n_known, n_ood = int(known.sum()), int((~known).sum())
    if n_known == 0 or n_ood == 0:
        kind = "named a known class" if n_known == 0 else "was OOD"
        return Sorter(None, 1.0, f"no answer {kind} so far: nothing is called junk", n_known, n_ood)
    classes = torch.where(known, answers, n_classes)

    def fitted(rows: Tensor, *purpose: str | int) -> Head:
        return fit_head(vectors[rows], classes[rows], n_classes + 1, RECIPE, key.child("sorter", *purpose).torch())

    whole = fitted(torch.arange(len(answers)), "all")
    if min(n_known, n_ood) < FEWEST:
        how = f"{UNCHOSEN:g}: fewer than {FEWEST} known or OOD answers are too few to choose a threshold from"
        return Sorter(whole, UNCHOSEN, how, n_known, n_ood)
    fold = _folds(torch.from_numpy(key.child("sorter", "folds").uniform(ids.hashes())), known)
    unseen = torch.empty(len(answers))
    for i in range(N_FOLDS):
        held_out = fold == i
        unseen[held_out] = _probability(fitted((~held_out).nonzero()[:, 0], i), vectors[held_out])
    threshold, kept, caught = choose_threshold(unseen, known)
    how = (
        f"the probability of OOD at which {N_FOLDS}-fold cross-fitting over {n_known} known and {n_ood} OOD answers "
        f"sorts best (balanced): {kept:.0%} of the known kept, {caught:.0%} of the OOD caught. The answers were "
        "chosen by the campaign, not at random"
    )
    return Sorter(whole, threshold, how, n_known, n_ood, kept, caught)


def choose_threshold(probability: Tensor, known: Tensor) -> tuple[float, float, float]:
    """The threshold of the best balanced accuracy, the share of known items at or below it, of the others above it.

    probability [n] of OOD, known [n]; at least one of each kind. Every cut between two neighbouring values is tried.
    """
    values, order = torch.sort(probability.double())
    kept = known[order].double().cumsum(0) / known.sum()
    caught = 1.0 - (~known[order]).double().cumsum(0) / (~known).sum()
    edges = torch.cat([values, torch.ones(1, dtype=torch.float64)])
    # a cut lies after the last of equal values only, and one that lets everything through is no cut
    possible = (edges[1:] > values) & (values < 1.0)
    score = torch.where(possible, kept + caught, -1.0)
    best = (score >= score.max() - 1e-12).nonzero()[:, 0]
    widest = best[(edges[best + 1] - values[best]).argmax()]
    threshold = float((values[widest] + edges[widest + 1]) / 2)
    return threshold, float(kept[widest]), float(caught[widest])


def _folds(order: Tensor, known: Tensor) -> Tensor:
    """A fold [n] for each answer: both kinds are dealt out evenly, in an order keyed by the items' ids."""
    fold = torch.empty(len(known), dtype=torch.long)
    for kind in (known, ~known):
        rows = kind.nonzero()[:, 0]
        fold[rows[order[rows].argsort(stable=True)]] = torch.arange(len(rows)) % N_FOLDS
    return fold


def _probability(head: Head, vectors: Tensor) -> Tensor:
    return encode(head, vectors)["logits"].double().softmax(dim=1)[:, -1].float()
