"""ActiveLearner: the loop seen from outside. `ask` for a query, `tell` answers, again until there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mqnet.data.labelled import Labelled as Reserved
from mqnet.errors import ConfigError, PoolError
from mqnet.ids import ItemIds
from mqnet.loop import rounds
from mqnet.loop.audit import audit_places, draw, interleaved, whole_sample
from mqnet.loop.checkpoints import FOLDER, FolderCheckpoints
from mqnet.loop.coders import FolderShelf, MemoryShelf
from mqnet.loop.costs import measured_costs
from mqnet.loop.first import class_arrays, first_ranking
from mqnet.loop.opening import PoolLike, as_path, as_plugin, as_pool, make_model, make_strategy, open_store, place_of
from mqnet.loop.progress import Watch, watching
from mqnet.loop.rounds import Labelled, Stopwatch
from mqnet.loop.spaces import CODED, Spaces, coder_config, holds_images
from mqnet.models.base import FittedModel
from mqnet.models.checkpoints import Particular
from mqnet.models.contrastive.config import CoderConfig
from mqnet.oracles.simulated import Truth
from mqnet.registry import STRATEGY
from mqnet.rng import Key
from mqnet.store.blobs import digest_of, make_folder
from mqnet.store.campaign import CampaignStore, RoundRecord
from mqnet.store.ledger import affords_another, charged, sure_labels
from mqnet.store.lock import LoopLock
from mqnet.strategies.base import Ranking, Strategy
from mqnet.types import (
    Answer,
    Arrays,
    Budget,
    BudgetUnit,
    CampaignConfig,
    Costs,
    CostSource,
    Initial,
    ItemId,
    LedgerLine,
    Pool,
    Query,
    Selection,
)
from mqnet.view import RoundView

Monitor = Callable[[RoundView, Selection, FittedModel], Mapping[str, float]]
"""Called once per round with what ranked it; what it returns is stored with the round."""

LENGTHS_AHEAD = 3
"""How many rounds' worth of items people may answer early while the loop trains."""

SHARED = "shared"
"""Folder of the coders of a campaign, or of the campaigns of a run."""


class ActiveLearner:
    """A campaign: a pool, known classes, a budget per round, a strategy and a target model.

    With a `folder` everything is kept there and the same call continues where it stopped; without, in memory.
    `coder` are the options of contrastive coders, for strategies that need one on images; they are kept in `shared`,
    which campaigns on the same pool may share (default: `shared` in the folder).
    """

    def __init__(
        self,
        pool: PoolLike,
        classes: Sequence[str],
        *,
        budget: float,
        rounds: int | None = None,
        total_budget: float | None = None,
        cost_known: float = 1.0,
        cost_ood: float = 1.0,
        cost_skip: float = 0.0,
        strategy: str | Mapping[str, object] = "mqnet",
        model: str | Mapping[str, object] = "head",
        seed: int = 0,
        audit_share: float = 0.0,
        initial: Initial = "random",
        class_vectors: NDArray[np.floating[Any]] | Tensor | None = None,
        budget_unit: BudgetUnit = "labels",
        ranking_costs: CostSource = "stated",
        coder: CoderConfig | Mapping[str, object] | None = None,
        folder: str | Path | None = None,
        shared: str | Path | None = None,
        monitor: Monitor | None = None,
        truth: Truth | None = None,
        validation: Reserved | None = None,
        watch: Watch | None = None,
    ) -> None:
        if isinstance(classes, str):
            raise ConfigError(f"classes is the single text '{classes}'; give a list of names.")
        names = None if class_vectors is None else class_arrays(class_vectors)
        config = CampaignConfig(
            classes=tuple(classes),
            budget=Budget(budget, total_budget, budget_unit),
            costs=Costs(cost_known, cost_ood, cost_skip),
            rounds=rounds,
            strategy=as_plugin(strategy),
            model=as_plugin(model),
            seed=seed,
            audit_share=audit_share,
            initial=initial,
            class_vectors=None if names is None else digest_of(names),
            ranking_costs=ranking_costs,
        )
        config.check()
        opened, coders = as_pool(pool), coder_config(coder)
        if len(opened.ids) and make_strategy(config, truth is not None).needs & CODED and holds_images(opened):
            config = replace(config, coder=coders.model_dump())
        place = Path(folder) if folder is not None else None
        self._start(opened, config, place, monitor, truth, watch, validation, shared=as_path(shared))
        if names is not None:
            self.store.blobs.put(names)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        pool: PoolLike | None = None,
        *,
        monitor: Monitor | None = None,
        watch: Watch | None = None,
        shared: str | Path | None = None,
        looking: bool = False,
    ) -> ActiveLearner:
        """Continue the campaign of a folder. The pool is found where it was, or given: its content must be the same.

        `looking` takes no lock: what is there can be looked at while another process works on it, and `ask` and `tell`
        are left to that one.
        """
        store = CampaignStore.open(Path(folder))
        config, place = store.config(), store.pool().get("path")
        store.close()
        if pool is None:
            if not isinstance(place, str):
                raise PoolError(f"the pool of the campaign in '{folder}' was in memory: pass it again.")
            beside = Path(folder) / Path(place).name  # a pool inside the folder moves with it
            pool = beside if beside.is_file() and not Path(place).is_file() else Path(place)
        learner = cls.__new__(cls)
        learner._start(
            as_pool(pool), config, Path(folder), monitor, None, watch, looking=looking, shared=as_path(shared)
        )
        return learner

    def _start(
        self,
        pool: Pool,
        config: CampaignConfig,
        folder: Path | None,
        monitor: Monitor | None,
        truth: Truth | None,
        watch: Watch | None,
        validation: Reserved | None = None,
        *,
        looking: bool = False,
        shared: Path | None = None,
    ) -> None:
        self._validation = validation
        self.pool, self.config, self._monitor, self._truth, self._watch = pool, config, monitor, truth, watch
        self._strategy, self._model = make_strategy(config, truth is not None), make_model(config)
        coded = self._strategy.needs & CODED if config.coder else frozenset[str]()
        if coded and shared is None and folder is not None:
            shared = folder / SHARED
        shelf = MemoryShelf() if shared is None else FolderShelf(shared)
        told = watch("training the contrastive coder") if watch is not None and coded else None
        self._spaces = Spaces(pool, coded, coder_config(config.coder), config.seed, shelf, told)
        missing = self._strategy.needs - self._model.provides - coded
        if missing:
            raise ConfigError(
                f"strategy '{config.strategy.name}' needs {', '.join(sorted(missing))}, which the model "
                f"'{config.model.name}' does not give (it gives {', '.join(sorted(self._model.provides))})."
            )
        if len(pool.ids) == 0:
            raise PoolError("the pool is empty: there is nothing to ask.")
        if isinstance(self._model, Particular):
            self._model.check_input(pool.load(pool.ids.take(slice(0, 1))))
        description = {"fingerprint": pool.fingerprint(), "n_items": len(pool.ids), **place_of(pool)}
        self._lock: LoopLock | None = None
        if folder is not None and not looking:
            make_folder(folder)
            self._lock = LoopLock(folder)
        try:
            self.store = open_store(folder, config, description)
        except BaseException:
            self.close()
            raise

    # -- ask and tell --------------------------------------------------------------------------------------------------

    def ask(self) -> Query | None:
        """The open query: items to answer, most wanted first. Asking again returns the same; None when all is done."""
        while True:
            query = self.store.offered()
            if query is not None and query.items:
                return query
            if query is not None and not self._extend(query.round):
                self._close_round(query.round)
            elif query is None and not self._open_next():
                return None

    def tell(self, answers: Mapping[ItemId, Answer | str], *, annotator: str = "") -> None:
        """Take answers (class names, `OOD` or `SKIP`) to all or some of the open items, or corrections of earlier ones.

        All are taken or none; when the call returns they are durable. The last answer of a round closes it.
        """
        self.store.record(answers, annotator)
        query = self.store.offered()
        if query is not None and not query.items and not self._extend(query.round):
            self._close_round(query.round)

    def requeue(self, items: Sequence[ItemId]) -> None:
        """Let skipped items be asked again: at once if their round is open, else when a later round ranks them.

        What their skips were charged stays spent.
        """
        self.store.requeue(items)

    @property
    def ledger(self) -> list[LedgerLine]:
        """Everything answered so far, in the order of purchase."""
        return self.store.ledger()

    @property
    def spent(self) -> float:
        """The cost of all answers so far, skips that were queued again included."""
        return self.store.spent

    @cached_property
    def _columns(self) -> frozenset[str]:
        return self._strategy.needs | {"logits"}

    def fitted(self) -> FittedModel:
        """The target model trained on every answer given so far."""
        lines, round_ = self.ledger, len(self.store.rounds())
        model = self._fit(self._labelled(lines), round_, f"training on {len(lines)} answers")
        self._training_is_over()
        return model

    def fitted_on(self, lines: Sequence[LedgerLine], round_: int) -> FittedModel:
        """The target model trained on these answers alone, as a round's model is."""
        own = self._columns - self._spaces.columns
        return rounds.fit_model(self.pool, self._labelled(lines), self.config, self._model, own, round_)

    def _fit(self, labelled: Labelled, round_: int, what: str) -> FittedModel:
        """Trained where a killed process of this campaign left off."""
        own = self._columns - self._spaces.columns
        with watching(self._own_folder, self._watch, what) as watch:
            return rounds.fit_model(
                self.pool, labelled, self.config, self._model, own, round_,
                checkpoints=self._checkpoints, watch=watch,
            )  # fmt: skip

    @property
    def _own_folder(self) -> Path | None:
        """The campaign's folder if this process may write to it: one that only looks may not."""
        return self.store.folder if self._lock is not None else None

    @property
    def _checkpoints(self) -> FolderCheckpoints | None:
        return FolderCheckpoints(self._own_folder / FOLDER) if self._own_folder is not None else None

    def _training_is_over(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.clear()

    def model_of(self, round_: int) -> FittedModel | None:
        """The model that ranked a round, if it was kept."""
        return self._kept(self.store.rounds()[round_])

    def predict(self, inputs: Tensor | NDArray[np.floating[Any]], model: FittedModel | None = None) -> list[str]:
        """The most likely known class of each input row, by the model of all answers so far."""
        rows = inputs if isinstance(inputs, Tensor) else torch.from_numpy(np.asarray(inputs))
        logits = (model or self.fitted()).encode(rows, frozenset({"logits"}))["logits"]
        return [self.config.classes[i] for i in logits.argmax(dim=1).tolist()]

    def close(self) -> None:
        """Release the campaign for other processes."""
        if self._lock is not None:
            self._lock.release()
        if hasattr(self, "store") and self.store.folder is not None:
            self.store.close()

    def __enter__(self) -> ActiveLearner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- rounds --------------------------------------------------------------------------------------------------------

    def _labelled(self, lines: Sequence[LedgerLine]) -> Labelled:
        return rounds.labelled_from(self.pool, lines, self.config.classes)

    def _open_next(self) -> bool:
        records, (lines, seen) = self.store.rounds(), self.store.ledger_and_log()
        round_ = len(records)
        if self.config.rounds is not None and round_ > self.config.rounds:
            return False
        budget, total = self.config.budget.round, self.config.budget.total
        if total is not None:
            budget = min(budget, total - self.store.spent)
        unlabelled = self.pool.ids.without([line.item for line in lines]).sorted()
        measured = measured_costs(self.store, self.config)
        charges = charged(self.config, measured)
        if not len(unlabelled) or not affords_another((), budget, charges):
            return False
        places = audit_places(self.config, records, sure_labels(budget, charges))
        drawn = draw(unlabelled, len(places), self._key(round_, "audit"))
        n = self._n_ranked(budget, charges) + len(drawn)
        if round_ == 0:
            first = first_ranking(self.pool, self.config, self.store.blobs, n)
            audited = (
                whole_sample(first, sure_labels(budget, charges))
                if self.config.initial == "random"
                else interleaved(first, drawn, places)
            )
            self.store.open_round(
                RoundRecord(0, budget, costs=measured, answers_seen=seen), audited.ranking, audited.drawn
            )
            return True
        before = records[-1].state_after
        self._restore(before)
        watch = Stopwatch({})
        watch.start()
        model, view = self._view(round_, unlabelled, lines, watch, measured)
        selection = rounds.select(self._strategy, self.config.strategy.name, view, n, self._key(round_, "select"))
        watch.stop("select")
        found = dict(self._monitor(view, selection, model)) if self._monitor is not None else {}
        audited = interleaved(_ranking(view.ids, selection), drawn, places)
        record = RoundRecord(
            round_,
            budget,
            costs=measured,
            state_before=before,
            snapshot=self.store.blobs.put(rounds.pack_snapshot(selection, audited.rows if drawn else None)),
            model=self._keep(model),
            metrics=watch.seconds | found,
            answers_seen=seen,
        )
        self.store.open_round(record, audited.ranking, audited.drawn)
        self._training_is_over()  # not before: killed while it encodes the pool, a campaign need not train again
        return True

    def _view(
        self,
        round_: int,
        unlabelled: ItemIds,
        lines: Sequence[LedgerLine],
        watch: Stopwatch,
        measured: Costs | None,
        model: FittedModel | None = None,
    ) -> tuple[FittedModel, RoundView]:
        labelled = self._labelled(lines)
        if model is None:
            model = self._fit(labelled, round_, f"training for round {round_}")
        watch.stop("fit")
        truth = None
        if self._truth is not None and STRATEGY.get(self.config.strategy.name).reference:
            truth = torch.from_numpy(self._truth.of(unlabelled))
        with watching(self._own_folder, self._watch, f"looking at the pool for round {round_}") as told:
            view = rounds.make_view(
                self.pool,
                unlabelled,
                labelled,
                model,
                self._columns,
                self.config,
                round_,
                measured if measured is not None and self.config.ranking_costs == "measured" else self.config.costs,
                truth=truth,
                validation=self._validation,
                spaces=self._spaces,
                watch=told,
            )
        watch.stop("encode")
        return model, view

    def lines_before(self, round_: int) -> list[LedgerLine]:
        """The answers a round was ranked on, as they stood then: corrections and requeues since are not in them."""
        seen = self.store.rounds()[round_].answers_seen
        if seen is None:  # a round from before this was noted: today's answers to earlier rounds come nearest
            return [line for line in self.ledger if line.round < round_]
        return self.store.ledger_at(seen)

    def view(self, round_: int) -> tuple[FittedModel, RoundView]:
        """The model and the view that ranked a round, made again from what is stored."""
        records = self.store.rounds()
        if not 1 <= round_ < len(records):
            raise ConfigError(f"round {round_} has no view; rounds 1 to {len(records) - 1} have one.")
        lines = self.lines_before(round_)
        model = self._kept(records[round_])
        unlabelled = self.pool.ids.without([line.item for line in lines]).sorted()
        watch = Stopwatch({})
        watch.start()
        return self._view(round_, unlabelled, lines, watch, records[round_].costs, model)

    def _extend(self, round_: int) -> bool:
        """Rank more items for a round whose ranking was used up by skips; False when the round is truly over."""
        record = self.store.rounds()[round_]
        lines = self.ledger
        costs = [line.cost for line in lines if line.round == round_]
        ranking = self.store.scores(round_)
        gone = {line.item for line in lines if line.round < round_} | set(ranking)
        charges = charged(self.config, record.costs)
        if not affords_another(costs, self.store.covers(record), charges) or len(gone) >= len(self.pool.ids):
            return False
        n = 2 * len(ranking) + self._n_ranked(record.budget, charges)
        if round_ == 0:
            longer = first_ranking(self.pool, self.config, self.store.blobs, n)
            self.store.extend_ranking(0, [*ranking.items(), *(pair for pair in longer if pair[0] not in ranking)], None)
            return True
        _, view = self.view(round_)
        self._restore(record.state_before)
        selection = rounds.select(self._strategy, self.config.strategy.name, view, n, self._key(round_, "select"))
        # what was ranked stays first, in its order, and with it what is asked
        items = list(view.ids.take(selection.rows.numpy()))
        fresh = [i for i, item in enumerate(items) if item not in ranking]
        scores = selection.scores.tolist()
        more = [(items[i], scores[i]) for i in fresh]
        old = self.store.blobs.get(record.snapshot or "")
        new = rounds.pack_snapshot(selection)
        joined = {k: np.concatenate([old[k], new[k][fresh]]) if k.startswith("row.") else old[k] for k in old}
        self.store.extend_ranking(round_, [*ranking.items(), *more], self.store.blobs.put(joined))
        return bool(more)

    def _close_round(self, round_: int) -> None:
        records, lines = self.store.rounds(), self.ledger
        if round_ == 0:
            self.store.close_round(0, None, {})
            return
        feedback = [
            rounds.feedback_from(r.round, self.store.blobs.get(r.snapshot), lines, self.config.classes)
            for r in records
            if r.snapshot is not None
        ]
        self._restore(records[round_].state_before)
        watch = Stopwatch({})
        watch.start()
        self._strategy.learn(feedback, self._key(round_, "learn"))
        watch.stop("learn")
        state = {name: tensor.detach().numpy() for name, tensor in self._strategy.state().items()}
        self.store.close_round(round_, self.store.blobs.put(state) if state else None, watch.seconds)

    def _restore(self, digest: str | None) -> None:
        self._strategy = make_strategy(self.config, self._truth is not None)
        if digest is not None:
            self._strategy.restore(self._tensors(digest))

    def scores_of(self, round_: int) -> tuple[ItemIds, Tensor] | None:
        """The score of every item a round could choose from, where its strategy is one that ranks by a score."""
        strategy = self.strategy_of(round_)
        if not isinstance(strategy, Ranking) or type(strategy).score is Ranking.score:
            return None
        _, view = self.view(round_)
        return view.ids, strategy.score(view, self._key(round_, "select"))

    def strategy_of(self, round_: int) -> Strategy:
        """The strategy as it ranked a round."""
        strategy = make_strategy(self.config, True)
        digest = self.store.rounds()[round_].state_before
        if digest is not None:
            strategy.restore(self._tensors(digest))
        return strategy

    def _tensors(self, digest: str) -> Arrays:
        return {name: torch.from_numpy(np.array(array)) for name, array in self.store.blobs.get(digest).items()}

    def _keep(self, model: FittedModel) -> str | None:
        state = {name: tensor.detach().numpy() for name, tensor in model.state().items()}
        return self.store.blobs.put(state) if state else None

    def _kept(self, record: RoundRecord) -> FittedModel | None:
        return self._model.restore(self._tensors(record.model)) if record.model is not None else None

    def _n_ranked(self, budget: float, charges: Costs) -> int:
        """Enough for a round of the cheapest answers, some to replace skipped items, more for people to go on with.

        Any length asks the same items: a ranking is a prefix of every longer one.
        """
        n = math.ceil(budget / charges.cheapest)
        n += max(8, n // 10)
        people = self.store.project()
        return LENGTHS_AHEAD * n if people is not None and people.early_answers else n

    def _key(self, round_: int, purpose: str) -> Key:
        return Key(self.config.seed).child("round", round_, purpose)


def _ranking(ids: ItemIds, selection: Selection) -> list[tuple[ItemId, float]]:
    return list(zip(ids.take(selection.rows.numpy()), selection.scores.tolist(), strict=True))
