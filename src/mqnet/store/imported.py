"""Labels that were there before the campaign: its round 0, uncharged and marked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from mqnet.errors import StoreError
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.ledger import answer_columns
from mqnet.store.tables import answer_log, answers, rounds
from mqnet.types import Answer, ItemId

IMPORTED = "imported"
"""The annotator of imported labels."""


def import_answers(store: CampaignStore, given: Mapping[ItemId, Answer]) -> None:
    """Enter answers as a closed round 0 without a budget, in place of the random first sample: round 1 is next.

    They cost nothing: nobody was paid for them in this campaign. A later correction is charged as any label is.
    """
    begun = store.rounds()
    if begun and not _half_done(begun):
        raise StoreError("labels can only be imported into a campaign that has not begun.")
    if not begun:
        store.open_round(RoundRecord(0, 0.0), [(item, 0.0) for item in given])
    rows: list[dict[str, object]] = []
    for position, (item, answer) in enumerate(given.items()):
        kind, name = answer_columns(answer)
        row = {"item": item, "round": 0, "kind": kind, "name": name, "cost": 0.0, "annotator": IMPORTED}
        rows.append({**row, "answered_at": time.time(), "position": position})
    with store.writing() as connection:
        connection.execute(answers.insert(), rows)
        log = [{name: value for name, value in row.items() if name != "position"} for row in rows]
        connection.execute(answer_log.insert(), log)
        connection.execute(rounds.update().values(closed=True, closed_at=time.time()))


def has_begun(store: CampaignStore) -> bool:
    """Is there anything to go on with, beyond an import that a crash cut short?"""
    begun = store.rounds()
    return bool(begun) and not _half_done(begun)


def _half_done(begun: Sequence[RoundRecord]) -> bool:
    # an open round 0 without a budget: only an import opens one, and it closes it in its next transaction
    return len(begun) == 1 and begun[0].round == 0 and begun[0].budget == 0.0 and not begun[0].closed
