"""The audit: a share of every round's labels goes to items drawn uniformly at random, whatever the strategy wants.

How many are drawn is settled before any answer. A round of budget b buys its first `sure_labels` items whatever they
turn out to be, and only among these places lie the audit's: each item drawn is bought, so the number of draws tells
nothing about the answers and the draws stay a uniform sample. At the dearest price they cost their share of b at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray

from mqnet.ids import ItemIds
from mqnet.numerics.ranking import top_n
from mqnet.rng import Key
from mqnet.store.campaign import RoundRecord
from mqnet.store.ledger import charged, sure_labels
from mqnet.types import CampaignConfig, ItemId


@dataclass(frozen=True)
class Audited:
    """A ranking with the audit's items in it: who was drawn, and each place's row in the strategy's own ranking.

    `rows` [n] is -1 where the strategy did not rank the item.
    """

    ranking: list[tuple[ItemId, float]]
    drawn: frozenset[ItemId]
    rows: NDArray[np.int64]


def audit_places(config: CampaignConfig, records: Sequence[RoundRecord], n_sure: int) -> NDArray[np.int64]:
    """Where the next round's audit stands among its sure labels, given the rounds before it.

    The initial random sample is a uniform draw as a whole (`whole_sample`): it has no places of its own.
    """
    if not records and config.initial == "random":
        return np.empty(0, dtype=np.int64)
    shared = records[1:] if config.initial == "random" else records
    n_before = sum(sure_labels(record.budget, charged(config, record.costs)) for record in shared)
    return slots(config.audit_share, n_before, n_sure)


def whole_sample(ranking: list[tuple[ItemId, float]], n_sure: int) -> Audited:
    """The initial random sample: its sure labels are draws too; how many more it buys depends on the answers."""
    drawn = frozenset(item for item, _ in ranking[:n_sure])
    return Audited(ranking, drawn, np.arange(len(ranking)))


def slots(share: float, n_before: int, n: int) -> NDArray[np.int64]:
    """Places of the audit among a round's n sure labels, evenly spread; `n_before` sure labels lie in earlier rounds.

    Place p is one of them if floor(share (n_before + p + 1)) > floor(share (n_before + p)): what a small round rounds
    away is carried into the next, and the places of n are those of n + m below n.
    """
    exact = Fraction(share).limit_denominator(1_000_000)  # 0.29 of a hundred labels are 29
    counts = (n_before + np.arange(n + 1)) * exact.numerator // exact.denominator
    return np.flatnonzero(np.diff(counts) > 0)


def draw(unlabelled: ItemIds, n: int, key: Key) -> list[tuple[ItemId, float]]:
    """n of the unlabelled items, uniformly at random, with the keyed numbers that drew them; a prefix of any more."""
    if n <= 0:
        return []
    ids = unlabelled.sorted()
    numbers = torch.from_numpy(key.uniform(ids.hashes()))
    rows = top_n(numbers, n)
    return list(zip(ids.take(rows.numpy()), numbers[rows].tolist(), strict=True))


def interleaved(
    wanted: Sequence[tuple[ItemId, float]], drawn: Sequence[tuple[ItemId, float]], places: Iterable[int]
) -> Audited:
    """The strategy's ranking with the drawn items at these places.

    An item that is drawn and wanted stands where it comes up first, counts as drawn, and leaves its other place to the
    strategy. Whether a place holds this item or that does not depend on how long the rankings are.
    """
    row_of = {item: row for row, (item, _) in enumerate(wanted)}
    ranking: list[tuple[ItemId, float]] = []
    placed: set[ItemId] = set()
    by_strategy, by_chance, at = iter(wanted), iter(drawn), frozenset(places)

    def place(pair: tuple[ItemId, float] | None) -> bool:
        if pair is None or pair[0] in placed:
            return False
        ranking.append(pair)
        placed.add(pair[0])
        return True

    while True:
        if len(ranking) in at and place(next(by_chance, None)):
            continue
        if not any(place(pair) for pair in by_strategy):
            break
    for pair in by_chance:  # the strategy ran out of items: the pool ends with this round
        place(pair)
    rows = np.asarray([row_of.get(item, -1) for item, _ in ranking], dtype=np.int64)
    return Audited(ranking, frozenset(item for item, _ in drawn), rows)
