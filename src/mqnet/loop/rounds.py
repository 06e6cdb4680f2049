"""The work of one round, as functions of what is stored: a training set, a view, a ranking, what was learned."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mqnet.data.labelled import Labelled as Reserved
from mqnet.errors import PluginError
from mqnet.ids import ItemIds
from mqnet.loop.spaces import Spaces
from mqnet.models.base import FittedModel, TargetModel, TrainingSet
from mqnet.models.checkpoints import Checkpoints, Resumable
from mqnet.models.encode import Watcher, encode_items
from mqnet.numerics.ranking import top_n
from mqnet.rng import Key
from mqnet.strategies.base import Strategy
from mqnet.types import Arrays, CampaignConfig, Costs, Feedback, ItemId, Known, LedgerLine, Outcome, Pool, Selection
from mqnet.view import OOD_CLASS, LabelledView, RoundView


@dataclass(frozen=True)
class Labelled:
    """The items with a usable answer (skipped ones left out), sorted by id, and their class numbers."""

    ids: ItemIds
    answers: NDArray[np.int64]


def labelled_from(pool: Pool, lines: Sequence[LedgerLine], classes: tuple[str, ...]) -> Labelled:
    """The labelled set a ledger stands for."""
    number = {name: i for i, name in enumerate(classes)}
    by_item = {
        line.item: number[line.answer.name] if isinstance(line.answer, Known) else OOD_CLASS
        for line in lines
        if line.answer is not Outcome.SKIP
    }
    ids = pool.ids.select(list(by_item)).sorted()
    return Labelled(ids, np.asarray([by_item[item] for item in ids], dtype=np.int64))


def training_set(pool: Pool, labelled: Labelled, n_classes: int) -> TrainingSet:
    """Inputs and classes of the known items, and the inputs of those answered OOD."""
    known = np.flatnonzero(labelled.answers >= 0)
    unknown = np.flatnonzero(labelled.answers < 0)
    return TrainingSet(
        inputs=pool.load(labelled.ids.take(known)),
        labels=torch.from_numpy(labelled.answers[known]),
        unknown=pool.load(labelled.ids.take(unknown)),
        n_classes=n_classes,
    )


def fit_model(
    pool: Pool,
    labelled: Labelled,
    config: CampaignConfig,
    model: TargetModel,
    columns: frozenset[str],
    round_: int,
    *,
    checkpoints: Checkpoints | None = None,
    watch: Watcher | None = None,
) -> FittedModel:
    """The round's target model; its randomness is keyed by seed and round, so every strategy trains alike."""
    key, train = Key(config.seed).child("round", round_, "fit"), training_set(pool, labelled, len(config.classes))
    if isinstance(model, Resumable):
        return model.fit_resumable(train, columns, key, checkpoints=checkpoints, watch=watch)
    return model.fit(train, columns, key)


def make_view(
    pool: Pool,
    unlabelled: ItemIds,
    labelled: Labelled,
    model: FittedModel,
    columns: frozenset[str],
    config: CampaignConfig,
    round_: int,
    costs: Costs,
    *,
    truth: torch.Tensor | None = None,
    validation: Reserved | None = None,
    spaces: Spaces | None = None,
    watch: Watcher | None = None,
) -> RoundView:
    """The view of a round: one model pass over the unlabelled items, one over the labelled and the reserved ones.

    The columns of `spaces` were computed once for the campaign and are looked up.
    """
    columns = columns - spaces.columns if spaces is not None else columns

    def coded(ids: ItemIds) -> Arrays:
        return spaces.of(ids) if spaces is not None else {}

    held_out = None
    if validation is not None:
        outside = spaces.of_others(validation.pool) if spaces is not None else {}
        held_out = LabelledView(
            validation.pool.ids,
            encode_items(model, validation.pool, validation.pool.ids, columns) | outside,
            torch.from_numpy(validation.labels),
        )
    return RoundView(
        ids=unlabelled,
        columns=encode_items(model, pool, unlabelled, columns, watch=watch) | coded(unlabelled),
        labelled=LabelledView(
            labelled.ids,
            encode_items(model, pool, labelled.ids, columns) | coded(labelled.ids),
            torch.from_numpy(labelled.answers),
        ),
        n_classes=len(config.classes),
        round=round_,
        key=Key(config.seed).child("round", round_, "scores"),
        costs=costs,
        truth=truth,
        validation=held_out,
    )


def initial_ranking(pool: Pool, config: CampaignConfig, n: int) -> list[tuple[ItemId, float]]:
    """Round 0: a uniform random order of the pool, the same for every strategy (METHOD 1)."""
    ids = pool.ids.sorted()
    scores = torch.from_numpy(Key(config.seed).child("initial").uniform(ids.hashes()))
    rows = top_n(scores, n)
    return list(zip(ids.take(rows.numpy()), scores[rows].tolist(), strict=True))


def check_selection(selection: Selection, view: RoundView, n: int, name: str) -> None:
    """A strategy's ranking must be min(n, N) distinct rows with a finite score and snapshot row each."""
    rows, expected = selection.rows, min(n, len(view))
    if rows.shape != (expected,) or selection.scores.shape != (expected,):
        raise PluginError(f"strategy '{name}' ranked {tuple(rows.shape)} rows; expected ({expected},).")
    if expected and (int(rows.min()) < 0 or int(rows.max()) >= len(view) or len(rows.unique()) < expected):
        raise PluginError(f"strategy '{name}' ranked a row twice or outside the view of {len(view)}.")
    broken = ~selection.scores.isfinite()
    if bool(broken.any()):
        item = view.ids[int(rows[broken.nonzero()[0]])]
        raise PluginError(f"strategy '{name}' gave item '{item}' a score that is not finite.")
    for field, column in selection.snapshot.items():
        if len(column) != expected:
            raise PluginError(f"strategy '{name}': snapshot '{field}' has {len(column)} rows for {expected} items.")


def pack_snapshot(selection: Selection, rows: NDArray[np.int64] | None = None) -> dict[str, NDArray[np.generic]]:
    """A selection's snapshot and constants as arrays to store: a row for each place of the ranking.

    `rows` [n] are the places' rows in the selection if they are not in order, -1 for items that only the audit drew:
    their rows are zeros, which nothing reads.
    """
    columns = {name: column.detach() for name, column in selection.snapshot.items()}
    if rows is not None:
        chosen, drawn = torch.from_numpy(rows.clip(0)), torch.from_numpy(rows < 0)
        columns = {name: column[chosen] for name, column in columns.items()}
        for column in columns.values():
            column[drawn] = 0
    constants = {f"constant.{name}": value.detach().numpy() for name, value in selection.constants.items()}
    return {f"row.{name}": column.numpy() for name, column in columns.items()} | constants


def unpack_snapshot(arrays: Mapping[str, NDArray[np.generic]]) -> tuple[Arrays, Arrays]:
    """Snapshot rows and constants as they were packed."""
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    rows = {name.removeprefix("row."): t for name, t in tensors.items() if name.startswith("row.")}
    constants = {name.removeprefix("constant."): t for name, t in tensors.items() if name.startswith("constant.")}
    return rows, constants


def feedback_from(
    round_: int, arrays: Mapping[str, NDArray[np.generic]], lines: Sequence[LedgerLine], classes: tuple[str, ...]
) -> Feedback:
    """What a round's answers teach: corrections since then are in it, skipped items and the audit's are not.

    A strategy learns from what it asked for: the audit's items have no place in its snapshot, and a few of them, far
    from all that was ranked high, would say little about the order at the top (docs/audit.md).
    """
    number = {name: i for i, name in enumerate(classes)}
    used = [line for line in lines if line.round == round_ and line.answer is not Outcome.SKIP and not line.audit]
    rows, constants = unpack_snapshot(arrays)
    positions = torch.tensor([line.position for line in used], dtype=torch.long)
    answers = [number[line.answer.name] if isinstance(line.answer, Known) else OOD_CLASS for line in used]
    return Feedback(
        round=round_,
        ids=tuple(line.item for line in used),
        answers=torch.tensor(answers, dtype=torch.long),
        snapshot={name: column[positions] for name, column in rows.items()},
        constants=constants,
    )


@dataclass
class Stopwatch:
    """Seconds per phase of a round."""

    seconds: dict[str, float]
    _since: float = 0.0

    def start(self) -> None:
        """Begin a phase."""
        self._since = time.perf_counter()

    def stop(self, phase: str) -> None:
        """End it under its name and begin the next."""
        self.seconds[f"seconds_{phase}"] = time.perf_counter() - self._since
        self.start()


def select(strategy: Strategy, name: str, view: RoundView, n: int, key: Key) -> Selection:
    """The strategy's ranking of the view's best n rows, checked."""
    selection = strategy.select(view, n, key)
    check_selection(selection, view, n, name)
    return selection
