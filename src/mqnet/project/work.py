"""Asking and telling from scripts, by the same inbox as the labelling app's and the same loop.

No torch is imported unless a round has to be ranked: telling is quick.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqnet.errors import AnswerError, BusyError
from mqnet.project.folder import opened, root_of
from mqnet.store.campaign import CampaignStore
from mqnet.store.health import Health
from mqnet.store.imported import IMPORTED
from mqnet.store.inbox import Given, Inbox, NotOpenError
from mqnet.store.ledger import n_known, n_ood
from mqnet.store.project import Project
from mqnet.store.recall import n_early
from mqnet.types import Answer, ItemId, Known

if TYPE_CHECKING:
    from mqnet.loop.progress import Watch

Json = dict[str, Any]
ANNOTATOR = "script"
"""Who answers through `mqnet tell` unless a name is given."""


@dataclass(frozen=True)
class Progress:
    """Where a project stands.

    `state`: asking (items are open), training (a worker is at it), waiting (for `mqnet ask` or `mqnet work`) or done.
    Imported labels are counted apart. `early` items were answered before a query asked for them: kept, not yet charged.
    """

    state: str
    round: int
    open: int
    answered: int
    known: int
    ood: int
    skipped: int
    imported: int
    early: int
    spent: float
    total_budget: float | None
    round_spent: float
    round_budget: float


@dataclass(frozen=True)
class Asked:
    """The open items, most wanted first, with what is shown of them."""

    progress: Progress
    items: tuple[Json, ...]

    def record(self) -> Json:
        """As a JSON object."""
        return {**asdict(self.progress), "items": list(self.items)}


@dataclass(frozen=True)
class Told:
    """What became of answers: bought or corrected, or kept for a later query."""

    charged: int
    early: int
    progress: Progress

    def record(self) -> Json:
        """As a JSON object."""
        return {**asdict(self.progress), "charged": self.charged, "early_now": self.early}


@dataclass(frozen=True)
class TakenBack:
    """An answer taken back; not `withdrawn` when its round is closed: it stands until a new answer is told."""

    item: ItemId
    answer: str
    withdrawn: bool


def progress(store: CampaignStore) -> Progress:
    """Where a project stands."""
    config, lines, records, query = store.config(), store.ledger(), store.rounds(), store.offered()
    bought = [line for line in lines if line.annotator != IMPORTED]
    last = records[-1] if records else None
    known, ood = n_known(bought), n_ood(bought)
    return Progress(
        state=_state(store, bool(query and query.items)),
        round=last.round if last else 0,
        open=len(query.items) if query else 0,
        answered=len(bought),
        known=known,
        ood=ood,
        skipped=len(bought) - known - ood,
        imported=len(lines) - len(bought),
        early=n_early(store),
        spent=store.spent,
        total_budget=config.budget.total,
        round_spent=store.spent_by_round().get(last.round, 0.0) if last else 0.0,
        round_budget=last.budget if last else config.budget.round,
    )


def ask(folder: Path, watch: Watch | None = None) -> Asked:
    """The open items; where none are open, the next round is ranked first, unless a worker is at it.

    `watch` is told how far training and the pass over the pool are.
    """
    with opened(folder) as (store, settings):
        query = store.offered()
        if query is None or not query.items:
            _go_on(folder, store, watch)
        query = store.offered()
        items = query.items if query else ()
        return Asked(progress(store), tuple(_shown(store, settings, folder, items)))


def tell(folder: Path, answers: Mapping[ItemId, Answer], annotator: str = ANNOTATOR) -> Told:
    """Take answers, all or none: to open items, corrections, and to ranked items ahead of a query if that is on."""
    with opened(folder) as (store, _):
        given = [Given(item, answer, uuid.uuid4().hex) for item, answer in answers.items()]
        try:
            receipts = Inbox(store).submit(annotator, given)
        except NotOpenError as error:
            raise AnswerError(f"{error} `mqnet ask {folder}` names the open items. Nothing was taken.") from error
        return Told(sum(r.charged for r in receipts), sum(r.early for r in receipts), progress(store))


def undo(folder: Path, n: int = 1, annotator: str = ANNOTATOR) -> list[TakenBack]:
    """Take back somebody's last n answers, the latest first; fewer when fewer are left."""
    out: list[TakenBack] = []
    with opened(folder) as (store, _):
        for _i in range(n):
            try:
                found = Inbox(store).undo(annotator)
            except NotOpenError as error:
                if out:
                    break
                raise AnswerError(f"there is no answer of '{annotator}' left to take back.") from error
            out.append(TakenBack(found.item, said(found.answer), found.withdrawn))
    return out


def status(folder: Path) -> Json:
    """What a project is and where it stands, as a JSON object."""
    with opened(folder) as (store, settings):
        config = store.config()
        what = {"name": settings.name, "kind": settings.kind, "items": store.pool()["n_items"]}
        return {**what, "classes": list(config.classes), "encoder": settings.encoder, **asdict(progress(store))}


def said(answer: Answer) -> str:
    """An answer as `tell` takes it."""
    return answer.name if isinstance(answer, Known) else answer.value


def finished(store: CampaignStore) -> bool:
    """Whether no further round will open: every round was run, or the budget or the pool is used up."""
    config, records = store.config(), store.rounds()
    if not records or not records[-1].closed:
        return False
    lines, total = store.ledger(), config.budget.total
    n_items = store.pool()["n_items"]
    return (
        (config.rounds is not None and records[-1].round >= config.rounds)
        or (total is not None and total - store.spent < config.costs.dearest * (1 - 1e-9))
        or (isinstance(n_items, int) and len(lines) >= n_items)
    )


def _state(store: CampaignStore, asking: bool) -> str:
    if asking:
        return "asking"
    worker = Health(store).worker()
    if worker is not None and worker.alive():
        return "done" if worker.state == "done" else "training"
    return "done" if finished(store) else "waiting"


def _go_on(folder: Path, store: CampaignStore, watch: Watch | None) -> None:
    """Close what is answered and rank the next round; early answers to its items are bought at once."""
    from mqnet.loop.learner import ActiveLearner

    try:
        with ActiveLearner.open(folder, watch=watch) as learner:
            while learner.ask() is not None:
                Inbox(store).settle()
                left = store.offered()
                if left is not None and left.items:
                    return
    except BusyError:
        return  # a worker does the same


def _shown(store: CampaignStore, settings: Project, folder: Path, items: Sequence[ItemId]) -> list[Json]:
    root = root_of(folder, settings)
    out: list[Json] = []
    for item in store.items(items).values():
        shown: Json = {"item": item.id, "kind": item.kind}
        if item.kind == "text":
            shown["text"] = item.ref
        elif item.kind == "image" and root is not None:
            shown["image"] = str(root / item.ref)
        out.append(shown)
    return out
