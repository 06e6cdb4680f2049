"""Meta-Query-Net (Park et al. 2022), with the variants and ablations of METHOD 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from mqnet.errors import ConfigError, PluginError
from mqnet.ids import ItemIds, RowNames
from mqnet.meta.fit import QuerySet
from mqnet.meta.net import Combine, MetaNet, settings_with
from mqnet.meta.recipe import FirstRound
from mqnet.meta.target import masked_cross_entropy
from mqnet.registry import INFORMATIVENESS, PURITY, strategy
from mqnet.rng import Key
from mqnet.types import Arrays, Feedback, Selection
from mqnet.view import LabelledView, RoundView


@strategy("mqnet")
@dataclass
class MqNet:
    """Learns from the answers just bought how purity and informativeness trade off, by a monotone net (MQ-Net)."""

    variant: str = "default"
    purity: str | None = None
    informativeness: str | None = None
    purity_options: dict[str, object] = field(default_factory=dict[str, object])
    informativeness_options: dict[str, object] = field(default_factory=dict[str, object])
    inputs: list[str] | None = None
    skyline: bool = True
    validation: Literal["query", "random"] = "query"
    combine: Combine = "net"
    replay: int | None = None
    sharpness: float | None = None
    first_round: FirstRound | None = None
    value_input: bool | None = None
    cost_aware: bool | None = None
    settings: dict[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        settings = settings_with(
            self.variant, skyline=self.skyline, replay=self.replay, sharpness=self.sharpness,
            first_round=self.first_round, value_input=self.value_input, cost_aware=self.cost_aware, more=self.settings,
        )  # fmt: skip
        if self.validation not in ("query", "random") or self.combine not in ("net", "sum", "product", "value"):
            raise ConfigError("mqnet: validation is query or random; combine is net, sum, product or value.")
        names = self.inputs or [self.purity or settings.purity, self.informativeness or settings.informativeness]
        pure = [name for name in names if name in PURITY.names()]
        others = [name for name in names if name not in pure]
        if not pure or not others:
            raise ConfigError(f"mqnet: {', '.join(names)} need a purity and an informativeness score among them.")
        usual = dict(settings.purity_options) if pure[0] == settings.purity else {}
        self.scores = [
            *(PURITY.score(name, {**usual, **self.purity_options} if name == pure[0] else {}) for name in pure),
            *(INFORMATIVENESS.score(n, self.informativeness_options if n == others[0] else {}) for n in others),
        ]
        self.needs = frozenset({"logits"}).union(*(score.needs for score in self.scores))
        log_odds = self.scores[0].entry.log_odds
        self.meta = MetaNet(
            settings, n_scores=len(names), informativeness=len(pure), log_odds=log_odds, combine=self.combine
        )

    def raw(self, view: RoundView) -> Tensor:
        """The scores [N, d] of every row, purity first."""
        return torch.stack([score(view).double() for score in self.scores], dim=1)

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The n best rows by the learned score; by informativeness alone while no answer so far is OOD."""
        raw, uniform = self.raw(view), torch.from_numpy(key.uniform(view.ids.hashes()))
        ranked = self.meta.rank(
            raw,
            n,
            any_ood=view.n_ood > 0,
            uniform=uniform,
            cost_ratio=view.costs.ood / view.costs.known,
            known_per_class=int(view.labelled.known.sum()) / view.n_classes,
        )
        rows, inputs = ranked.rows, ranked.inputs
        scaler = inputs.scaler
        snapshot = {"raw": raw[rows], "z": inputs.z[rows], "odds": inputs.log_odds[rows]}
        snapshot |= {"logits": view.column("logits")[rows]}
        constants = {"mean": scaler.mean, "std": scaler.std, "any_ood": torch.tensor(view.n_ood > 0)}
        if self.validation == "random":
            constants |= self._independent(view)
        return Selection(rows, ranked.scores, snapshot, constants, raw[:, 0], raw[:, self.meta.informativeness])

    def learn(self, feedback: Sequence[Feedback], key: Key) -> None:
        """Fit the net to the answered queries, or to the independent items of the ablation."""
        sets = [self._query_set(f) for f in feedback]
        # before the first OOD answer a purity score has nothing to be calibrated: it may be no log-odds at all yet
        told = [f for f in feedback if bool(f.constants["any_ood"])]
        odds = torch.cat([torch.empty(0, dtype=torch.float64), *(f.snapshot["odds"] for f in told)])
        is_known = torch.cat([torch.empty(0, dtype=torch.bool), *(f.answers >= 0 for f in told)])
        self.meta.learn(sets, odds, is_known, key.torch(), any_ood=bool(told))

    def _query_set(self, f: Feedback) -> tuple[Tensor, QuerySet]:
        if self.validation == "random":
            held = {name: f.constants[f"independent_{name}"] for name in ("raw", "z", "target")}
            return held["raw"], QuerySet(held["z"], held["target"])
        return f.snapshot["raw"], QuerySet(f.snapshot["z"], masked_cross_entropy(f.snapshot["logits"], f.answers))

    def _independent(self, view: RoundView) -> Arrays:
        """The ablation's items, scored beside the pool and in its frame: some scores look at all rows together."""
        held = view.validation
        if held is None:
            raise PluginError("mqnet: validation = 'random' needs independent items, which only a simulation reserves.")
        n = len(view)
        raw = self.raw(beside_pool(view, held))
        frame = self.meta.inputs(raw[:n]).frame
        z = self.meta.inputs(raw[n:], frame).z
        target = masked_cross_entropy(held.column("logits"), held.answers)
        return {"independent_raw": raw[n:], "independent_z": z, "independent_target": target}

    def state(self) -> Arrays:
        """The net's parameters and the calibration."""
        return self.meta.state()

    def restore(self, state: Arrays) -> None:
        """Become what `state` described."""
        self.meta.restore(state)


def beside_pool(view: RoundView, held: LabelledView) -> RoundView:
    """A view in which these items stand behind the pool's. Ids are row numbers: those of the two may be the same."""
    columns = {name: torch.cat([column, held.columns[name]]) for name, column in view.columns.items()}
    ids = ItemIds(RowNames(len(view) + len(held)))
    return RoundView(ids, columns, view.labelled, view.n_classes, view.round, view.key, view.costs)
