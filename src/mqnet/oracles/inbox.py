"""The oracle of a campaign with people: it reads what they answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mqnet.store.campaign import CampaignStore
from mqnet.store.inbox import Inbox
from mqnet.types import Answer, ItemId, Query


@dataclass(frozen=True)
class InboxOracle:
    """Answers given in the app: those to open items are in the ledger already, early ones are bought here."""

    store: CampaignStore

    def collect(self, query: Query) -> Mapping[ItemId, Answer]:
        """Buy what was answered early, and return nothing more to tell.

        Reading answers here and telling them a moment later would undo what people corrected in between.
        """
        Inbox(self.store).settle()
        return {}
