"""Frozen records that cross module boundaries. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from mqnet.errors import AnswerError, ConfigError, nearest_name

if TYPE_CHECKING:
    from torch import Tensor

    from mqnet.ids import ItemIds

ItemId: TypeAlias = str
BudgetUnit: TypeAlias = Literal["labels", "minutes"]
Initial: TypeAlias = Literal["random", "diverse", "names"]
CostSource: TypeAlias = Literal["stated", "measured"]
Arrays: TypeAlias = "dict[str, Tensor]"
"""Named plain tensors: what models and strategies remember, stored as safetensors."""


class Outcome(Enum):
    """The two answers that name no class."""

    OOD = "ood"
    SKIP = "skip"

    def __repr__(self) -> str:
        return self.name


OOD = Outcome.OOD
"""The item is junk: none of the known classes."""
SKIP = Outcome.SKIP
"""The annotator cannot tell."""


@dataclass(frozen=True)
class Known:
    """The item belongs to the known class of this name."""

    name: str


Answer: TypeAlias = Known | Outcome


def as_answer(value: Answer | str, classes: tuple[str, ...], item: ItemId) -> Answer:
    """The answer meant by `value` (a class name stands for `Known`); an unknown class is an error naming the item."""
    answer = Known(value) if isinstance(value, str) else value
    if not isinstance(answer, Known | Outcome):  # pyright: ignore[reportUnnecessaryIsInstance]  # people pass numbers
        raise AnswerError(f"item '{item}': {answer!r} is not an answer. Give a class name, OOD or SKIP.")
    if isinstance(answer, Known) and answer.name not in classes:
        raise AnswerError(
            f"item '{item}': '{answer.name}' is not a known class.{nearest_name(answer.name, classes)} "
            "Answer OOD for an item that belongs to none of them."
        )
    return answer


@dataclass(frozen=True)
class Costs:
    """What an answer costs: c_IN, c_OOD and the cost of a skip (METHOD 1)."""

    known: float = 1.0
    ood: float = 1.0
    skip: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("cost_known", self.known), ("cost_ood", self.ood)):
            if not (0 < value < float("inf")):
                raise ConfigError(f"{name} is {value}: a label's cost must be a positive, finite number.")
        if not (0 <= self.skip <= self.dearest):
            raise ConfigError(
                f"cost_skip is {self.skip}: it must lie between 0 and the dearest label's {self.dearest}."
            )

    @property
    def dearest(self) -> float:
        """The dearer of the two outcomes: what must be left to buy one more label."""
        return max(self.known, self.ood)

    @property
    def cheapest(self) -> float:
        """The cheaper of the two outcomes."""
        return min(self.known, self.ood)

    def of(self, answer: Answer) -> float:
        """The cost of an answer."""
        if isinstance(answer, Known):
            return self.known
        return self.ood if answer is Outcome.OOD else self.skip


@dataclass(frozen=True)
class Budget:
    """How much a round may spend, and all rounds together when `total` is set.

    In `minutes` an answer is charged what answers like it were measured to take when its round began; what the costs
    state (minutes per answer) is believed until there are measurements.
    """

    round: float
    total: float | None = None
    unit: BudgetUnit = "labels"

    def check(self, costs: Costs) -> None:
        """Refuse a budget that cannot buy a single label."""
        one_of("budget_unit", self.unit, get_args(BudgetUnit))
        for name, value in (("budget", self.round), ("total_budget", self.total)):
            if value is not None and not (costs.dearest <= value < float("inf")):
                raise ConfigError(
                    f"{name} is {value:g}, below the dearest label's cost of {costs.dearest:g}: "
                    "no item could be bought. Raise the budget or lower the cost."
                )


@dataclass(frozen=True)
class Plugin:
    """A plug-in chosen by name, with its options."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class CampaignConfig:
    """Everything that defines a campaign but the pool's content; stored with it and never changed.

    `audit_share` of every round's labels is drawn uniformly. `initial` says how round 0 ranks, `class_vectors`
    is the digest of the class names' vectors for `names`, `ranking_costs` says which costs the ranking reckons with.
    `coder` holds the options of the contrastive coders of a campaign on images whose strategy needs them, else nothing.
    """

    classes: tuple[str, ...]
    budget: Budget
    costs: Costs = field(default_factory=Costs)
    rounds: int | None = None
    strategy: Plugin = field(default_factory=lambda: Plugin("random"))
    model: Plugin = field(default_factory=lambda: Plugin("head"))
    seed: int = 0
    audit_share: float = 0.0
    initial: Initial = "random"
    class_vectors: str | None = None
    ranking_costs: CostSource = "stated"
    coder: Mapping[str, object] = field(default_factory=dict[str, object])

    def check(self) -> None:
        """Refuse a configuration that no campaign can run with."""
        if not self.classes:
            raise ConfigError("no classes were given. Name at least one known class.")
        if len(set(self.classes)) < len(self.classes) or not all(self.classes):
            raise ConfigError(f"class names must be unique and not empty; got {join(self.classes)}.")
        if self.rounds is not None and self.rounds < 1:
            raise ConfigError(f"rounds is {self.rounds}: a campaign has at least one round.")
        if not 0 <= self.audit_share < 1:
            raise ConfigError(f"audit_share is {self.audit_share}: a share of the budget lies from 0 to below 1.")
        one_of("initial", self.initial, get_args(Initial))
        one_of("ranking_costs", self.ranking_costs, get_args(CostSource))
        if (self.initial == "names") != (self.class_vectors is not None):
            raise ConfigError("initial = 'names' and a vector for each class name (class_vectors) belong together.")
        self.budget.check(self.costs)


@dataclass(frozen=True)
class Query:
    """The items open for answers now, most wanted first, and the round they belong to (0 is the initial sample)."""

    round: int
    items: tuple[ItemId, ...]


@dataclass(frozen=True)
class LedgerLine:
    """One bought (or skipped) item: what was answered, in which round, at which cost; `audit`: drawn at random."""

    round: int
    position: int
    item: ItemId
    answer: Answer
    cost: float
    annotator: str = ""
    audit: bool = False


@dataclass(frozen=True)
class Status:
    """Where a campaign stands after a step of the loop."""

    round: int
    state: str
    """'asking' (answers are awaited), 'done' (nothing left to ask) or 'advanced' (answers were taken)."""
    spent: float
    n_open: int
    reason: str = ""


@dataclass(frozen=True)
class Feedback:
    """What a query taught: the snapshot rows stored with its items and their answers, skipped items left out.

    `answers` [n] holds class numbers, -1 for OOD; every tensor of `snapshot` has n rows, `constants` are as stored.
    """

    round: int
    ids: tuple[ItemId, ...]
    answers: Tensor
    snapshot: Mapping[str, Tensor]
    constants: Mapping[str, Tensor]


@dataclass(frozen=True)
class Selection:
    """A strategy's ranking: rows of the view, best first, their scores, and what it wants to see again when learning.

    `snapshot` tensors have one row for each selected row; `constants` (a fitted scaler, say) have none.
    `purity` and `informativeness` [N], when the strategy has them, are the scores of every row of the view.
    """

    rows: Tensor
    scores: Tensor
    snapshot: Arrays = field(default_factory=dict[str, "Tensor"])
    constants: Arrays = field(default_factory=dict[str, "Tensor"])
    purity: Tensor | None = None
    informativeness: Tensor | None = None


@runtime_checkable
class Oracle(Protocol):
    """Whoever answers. `collect` never blocks and may return fewer answers than were asked."""

    def collect(self, query: Query) -> Mapping[ItemId, Answer]:
        """The answers that are there now for items of the query."""
        ...


class Pool(Protocol):
    """Unlabelled items. There are no labels here: only an oracle can see truth."""

    @property
    def ids(self) -> ItemIds:
        """Stable, user-visible ids of all items."""
        ...

    def load(self, ids: ItemIds) -> Tensor:
        """The model input of these items, one row each, in their order."""
        ...

    def fingerprint(self) -> str:
        """A hash of the ids and the content: two pools that are equal item by item share it."""
        ...


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ConfigError(f"{name} is '{value}'; it is one of {', '.join(choices)}.")


def join(names: Iterable[str]) -> str:
    """Names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)
