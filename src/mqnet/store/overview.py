"""Where a campaign stands, as people look at it: progress, state, their history, the dashboard, what to review."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from mqnet.store.campaign import CampaignStore
from mqnet.store.consensus import REVIEW, Vote, agreement, dawid_skene
from mqnet.store.health import Health, WorkerState
from mqnet.store.inbox import LIVE, as_vote, settings_in, votes_of
from mqnet.store.ledger import answer_from
from mqnet.store.purchase import spent_by_round
from mqnet.store.tables import answers, candidates, flags, rounds, votes
from mqnet.types import Answer, ItemId

MOST_REVIEWED = 200
MOST_VOTES = 20_000
"""Agreement and times are reckoned from the newest so many answers: a page must not wait for a long campaign."""

# made once: these are asked with every answer
_KINDS = sa.select(answers.c.round, answers.c.kind, sa.func.count().label("n")).group_by(
    answers.c.round, answers.c.kind
)
_BUDGETS = sa.select(rounds.c.round, rounds.c.budget).order_by(rounds.c.round)
# whether the newest ranking has an item that nobody has answered yet
_UNBOUGHT = ~sa.exists().where(answers.c.item == candidates.c.item)
_UNSEEN = ~sa.exists().where(votes.c.item == candidates.c.item, votes.c.state == LIVE)
_HAS_EARLY = sa.select(sa.exists().where(candidates.c.round == sa.bindparam("newest"), _UNBOUGHT, _UNSEEN))


@dataclass(frozen=True)
class Progress:
    """Counts and costs: of the newest round (`asked`, `answered`, `open`, `round_…`) and of the whole campaign."""

    round: int
    asked: int
    answered: int
    open: int
    round_spent: float
    round_budget: float
    spent: float
    total_budget: float | None
    n_known: int
    n_ood: int
    n_skipped: int


@dataclass(frozen=True)
class Situation:
    """What is going on, in a word and a sentence; `eta_seconds` is when the loop may be ready, by its last round."""

    state: str
    message: str
    progress: Progress
    worker: WorkerState | None
    alive: bool
    eta_seconds: float | None


@dataclass(frozen=True)
class RoundCount:
    """What a round bought."""

    round: int
    n_known: int
    n_ood: int
    n_skipped: int
    spent: float
    budget: float


@dataclass(frozen=True)
class Timing:
    """The median of the seconds an answer took, of n answers; None without any."""

    median: float | None
    n: int


@dataclass(frozen=True)
class AnnotatorCount:
    """How much somebody answered, how fast, and how often others agreed with them."""

    name: str
    n: int
    median_seconds: float | None
    agreement: float | None
    reliability: float | None


@dataclass(frozen=True)
class Dashboard:
    """The whole campaign in numbers."""

    rounds: list[RoundCount]
    spent: float
    total_budget: float | None
    class_counts: dict[str, int]
    annotators: list[AnnotatorCount]
    seconds: dict[str, Timing]
    seconds_by_view: dict[str, Timing]
    agreement: float | None
    n_disagreements: int
    n_flags: int


@dataclass(frozen=True)
class Flag:
    """An item marked by somebody."""

    annotator: str
    note: str
    flagged_at: float


@dataclass(frozen=True)
class Case:
    """An item to review: its votes, what the model of all votes proposes, its flags."""

    item: ItemId
    votes: list[Vote]
    proposed: Answer | None
    flags: list[Flag] = field(default_factory=list[Flag])


@dataclass(frozen=True)
class Past:
    """An answer somebody gave."""

    item: ItemId
    answer: Answer
    round: int | None
    answered_at: float


class Overview:
    """A campaign as people look at it. Everything here only reads."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        self._health = Health(store)

    # -- now -----------------------------------------------------------------------------------------------------------

    def _progress(self, connection: sa.Connection) -> Progress:
        """The campaign's counts and costs."""
        config = self._store.config_in(connection)
        counts = _counts(connection)
        newest = counts[-1] if counts else RoundCount(0, 0, 0, 0, 0.0, config.budget.round)
        query = self._store.open_query_in(connection)
        n_open, answered = len(query.items) if query else 0, newest.n_known + newest.n_ood + newest.n_skipped
        return Progress(
            round=newest.round,
            asked=answered + n_open,
            answered=answered,
            open=n_open,
            round_spent=newest.spent,
            round_budget=newest.budget,
            spent=math.fsum(count.spent for count in counts),
            total_budget=config.budget.total,
            n_known=sum(count.n_known for count in counts),
            n_ood=sum(count.n_ood for count in counts),
            n_skipped=sum(count.n_skipped for count in counts),
        )

    def situation(self) -> Situation:
        """What is going on now."""
        now, worker = time.time(), self._health.worker()
        with self._store.reading() as connection:
            progress = self._progress(connection)
            # rankings are long: what lies further down is not looked at where it does not matter
            early = not progress.open and settings_in(connection).early_answers
            early = early and connection.execute(_HAS_EARLY, {"newest": progress.round}).scalar_one()
        alive = worker is not None and worker.alive(now)
        if progress.open:
            n, total = progress.open, progress.asked
            message = f"{n} of {total} items of round {progress.round} are left."
            return Situation("asking", message, progress, worker, alive, None)
        if worker is not None and worker.state == "done":
            return Situation("done", worker.message, progress, worker, alive, None)
        if not alive:
            said = worker.message if worker is not None and worker.state == "stopped" else ""
            message = (
                said or "the loop is not running: `mqnet work` (or `mqnet label`) on the campaign's folder starts it."
            )
            return Situation("stopped", message, progress, worker, False, None)
        message = worker.message if worker is not None else ""
        eta = self._eta(worker, now)
        return Situation("early" if early else "training", message, progress, worker, True, eta)

    def _eta(self, worker: WorkerState | None, now: float) -> float | None:
        records = self._store.rounds()
        if worker is None or not records:
            return None
        took = math.fsum(value for name, value in records[-1].metrics.items() if name.startswith("seconds_"))
        return max(0.0, took - (now - worker.since)) if took else None

    # -- looking back --------------------------------------------------------------------------------------------------

    def history(self, annotator: str, limit: int) -> list[Past]:
        """Somebody's answers as they stand, newest first."""
        query = sa.select(votes).where(votes.c.annotator == annotator, votes.c.state == LIVE)
        with self._store.reading() as connection:
            rows = connection.execute(query.order_by(votes.c.seq.desc()).limit(limit)).all()
        return [Past(row.item, answer_from(row.kind, row.name), row.round, row.answered_at) for row in rows]

    def case(self, item: ItemId) -> Case:
        """An item's votes and flags."""
        with self._store.reading() as connection:
            marked = connection.execute(sa.select(flags).where(flags.c.item == item)).all()
            marks = [Flag(row.annotator, row.note, row.flagged_at) for row in marked]
            return Case(item, votes_of(connection, item), None, marks)

    def review(self) -> list[Case]:
        """Items whose votes differ or that somebody flagged, and that no owner has decided since; the newest first."""
        with self._store.reading() as connection:
            cast = _recent(connection)
            by_item, marks = _by_item(cast), _open_flags(connection)
            wanted = dict.fromkeys([*marks, *(item for item in _split(by_item) if item not in marks)])
            opinion = dawid_skene(cast)
            cases: list[Case] = []
            for item in list(wanted)[::-1][:MOST_REVIEWED]:
                group = by_item[item] if item in by_item else votes_of(connection, item)
                proposed = opinion.answers.get(item)
                cases.append(Case(item, group, proposed[0] if proposed else None, marks.get(item, [])))
        return cases

    def dashboard(self) -> Dashboard:
        """The whole campaign in numbers."""
        with self._store.reading() as connection:
            config = self._store.config_in(connection)
            counts, cast = _counts(connection), _recent(connection)
            named = sa.select(answers.c.name, sa.func.count()).where(answers.c.kind == "known").group_by(answers.c.name)
            by_class = {row[0]: row[1] for row in connection.execute(named)}
            given = sa.select(votes.c.annotator, sa.func.count()).where(votes.c.state == LIVE)
            by_person = {row[0]: row[1] for row in connection.execute(given.group_by(votes.c.annotator))}
            timed = sa.select(votes.c.annotator, votes.c.kind, votes.c.view, votes.c.seconds)
            timed = timed.where(votes.c.seconds.is_not(None), votes.c.state == LIVE)
            times = connection.execute(timed.order_by(votes.c.seq.desc()).limit(MOST_VOTES)).all()
            n_flags = len(_open_flags(connection))
        several = [vote for group in _by_item(cast).values() if len(group) > 1 for vote in group]
        reliability = dawid_skene(several).reliability
        people = [
            AnnotatorCount(
                name=name,
                n=n,
                median_seconds=_timing([row.seconds for row in times if row.annotator == name]).median,
                agreement=agreement(several, name),
                reliability=reliability.get(name),
            )
            for name, n in sorted(by_person.items())
        ]
        kinds, views = ("known", "ood", "skip"), ("focus", "grid", REVIEW)
        return Dashboard(
            rounds=counts,
            spent=math.fsum(count.spent for count in counts),
            total_budget=config.budget.total,
            class_counts={name: by_class.get(name, 0) for name in config.classes},
            annotators=people,
            seconds={kind: _timing([row.seconds for row in times if row.kind == kind]) for kind in kinds},
            seconds_by_view={view: _timing([row.seconds for row in times if row.view == view]) for view in views},
            agreement=agreement(several),
            n_disagreements=len(_split(_by_item(several))),
            n_flags=n_flags,
        )


def _counts(connection: sa.Connection) -> list[RoundCount]:
    """What every round bought so far, oldest first."""
    found: dict[int, dict[str, int]] = {}
    for row in connection.execute(_KINDS):
        found.setdefault(row.round, {})[row.kind] = row.n
    spent = spent_by_round(connection)
    out: list[RoundCount] = []
    for row in connection.execute(_BUDGETS):
        kinds: Mapping[str, int] = found.get(row.round, {})
        n_known, n_ood, n_skipped = (kinds.get(kind, 0) for kind in ("known", "ood", "skip"))
        out.append(RoundCount(row.round, n_known, n_ood, n_skipped, spent.get(row.round, 0.0), row.budget))
    return out


def _recent(connection: sa.Connection) -> list[Vote]:
    """The newest live votes, oldest first."""
    query = sa.select(votes).where(votes.c.state == LIVE).order_by(votes.c.seq.desc()).limit(MOST_VOTES)
    return [as_vote(row) for row in connection.execute(query)][::-1]


def _open_flags(connection: sa.Connection) -> dict[ItemId, list[Flag]]:
    """Flags by item, but for those an owner has answered to since: an answer in the review settles them."""
    after = sa.exists().where(
        votes.c.item == flags.c.item,
        votes.c.view == REVIEW,
        votes.c.state == LIVE,
        votes.c.answered_at >= flags.c.flagged_at,
    )
    found: dict[ItemId, list[Flag]] = {}
    for row in connection.execute(sa.select(flags).where(~after).order_by(flags.c.flagged_at)):
        found.setdefault(row.item, []).append(Flag(row.annotator, row.note, row.flagged_at))
    return found


def _by_item(cast: list[Vote]) -> dict[ItemId, list[Vote]]:
    out: dict[ItemId, list[Vote]] = {}
    for vote in cast:
        out.setdefault(vote.item, []).append(vote)
    return out


def _split(by_item: Mapping[ItemId, list[Vote]]) -> list[ItemId]:
    """The items about which people disagree and no owner has decided."""
    return [
        item
        for item, group in by_item.items()
        if len({vote.answer for vote in group}) > 1 and not any(vote.view == REVIEW for vote in group)
    ]


def _timing(seconds: list[float]) -> Timing:
    return Timing(statistics.median(seconds) if seconds else None, len(seconds))
