"""The open round as one transaction sees it, kept true while the transaction buys."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from mqnet.store.ledger import sure_labels
from mqnet.types import Costs, ItemId, Query


@dataclass
class Standing:
    """What a round may still buy: many answers in one transaction need one reading of it.

    `covered` is what its answers may cost together, `costs` counts its answers by what they cost. `unanswered` is the
    beginning of the unanswered ranking, longer than what is open: cheap answers make room for more. `whole` when it is
    all of it. Who writes what this cannot follow, a correction, sets `stale`: then it is read again.
    """

    round: int
    covered: float
    charges: Costs
    costs: Counter[float]
    unanswered: list[ItemId]
    whole: bool
    stale: bool = False
    _query: Query | None = field(default=None, init=False)

    @property
    def query(self) -> Query:
        """The items that may be answered now, in the order of the ranking."""
        if self._query is None:
            self._query = Query(self.round, tuple(self.unanswered[: self._n_open()]))
        return self._query

    def bought(self, item: ItemId, cost: float) -> None:
        """One of the items was answered at this cost."""
        self.costs[cost] += 1
        self.unanswered.remove(item)
        self._query = None
        if not self.whole and self._n_open() > len(self.unanswered):
            self.stale = True

    def _n_open(self) -> int:
        return sure_labels(self.covered - math.fsum(n * cost for cost, n in self.costs.items()), self.charges)
