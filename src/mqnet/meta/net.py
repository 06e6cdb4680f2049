"""MetaNet: what Meta-Query-Net remembers and does, on plain tensors; usable in anybody's loop.

meta = MetaNet()
while budget:
    scores = meta.score(purity, informativeness)          # of the unlabelled pool; higher = ask first
    query = scores.argsort(descending=True)[:n]           # ... label it ...
    meta.fit(purity[query], informativeness[query], loss, is_known)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor

from mqnet.errors import ConfigError, InputError, nearest_name
from mqnet.meta.fit import ENOUGH_PAIRS, FitOptions, QuerySet, fit
from mqnet.meta.inputs import Frame, MetaInput, drawn, fixed_rule, meta_input
from mqnet.meta.ranking_loss import n_pairs
from mqnet.meta.recipe import Recipe, recipe
from mqnet.meta.skyline import SkylineNet, start_net
from mqnet.meta.value import calibrate, log_cost, log_informativeness, onto_scale
from mqnet.numerics.ranking import top_n
from mqnet.numerics.scaling import Scaler
from mqnet.rng import Key
from mqnet.types import Arrays

Combine = Literal["net", "sum", "product", "value"]


@dataclass(frozen=True)
class Ranking:
    """The best rows with their scores, and the inputs that ranked them."""

    rows: Tensor
    scores: Tensor
    inputs: MetaInput


class MetaNet:
    """A recipe, the net it has trained so far and the calibration of its purity score.

    The first of `n_scores` scores is purity, number `informativeness` is informativeness. `combine` takes a fixed rule
    in place of the net (ablations).
    """

    def __init__(
        self,
        settings: Recipe | str = "default",
        *,
        n_scores: int = 2,
        informativeness: int = 1,
        log_odds: bool = False,
        combine: Combine = "net",
        seed: int = 0,
    ) -> None:
        self.settings = recipe(settings) if isinstance(settings, str) else settings
        if not 0 < informativeness < n_scores:
            raise ConfigError("the first score is purity; one of the others must be informativeness.")
        self.n_scores, self.informativeness = n_scores, informativeness
        self.log_odds, self.combine = log_odds, combine
        self.net: SkylineNet | None = None
        self.calibration = (1.0, 0.0)
        self._key, self._n_fits = Key(seed).child("meta"), 0
        self._history: list[tuple[Tensor, QuerySet]] = []
        self._odds: list[Tensor] = []
        self._frame: Frame | None = None

    # -- the score -----------------------------------------------------------------------------------------------------

    def inputs(self, raw: Tensor, frame: Frame | None = None) -> MetaInput:
        """Scores [n, d] as the net sees them: a pool's, or those of items looked at in the frame of a pool."""
        s = self.settings
        return meta_input(
            raw,
            self.informativeness,
            log_odds=self.log_odds,
            value_input=s.value_input,
            transform=s.transform,
            frame=frame,
        )

    def phi(self, inputs: MetaInput) -> Tensor:
        """The meta-score [N], float64: the net's, or the first round's rule while there is none."""
        rule = self.combine if self.combine != "net" else self.settings.first_round if self.net is None else "net"
        if rule == "net" and self.net is not None:
            return self.net.score(inputs.z)
        return inputs.value if rule == "value" else fixed_rule(inputs.rule_z, rule).double()

    def rank(
        self,
        raw: Tensor,
        n: int,
        *,
        any_ood: bool,
        uniform: Tensor,
        cost_ratio: float = 1.0,
        known_per_class: float = 8.0,
    ) -> Ranking:
        """The n best rows of scores [N, d]. `uniform` [N] are the items' keyed random numbers.

        Until an answer says OOD, purity cannot hurt: informativeness alone ranks, whatever labels cost. With a
        `sharpness`, what is ranked is a draw (see `drawn`) from the meta-score on the scale of the log value, less the
        log of the expected cost.
        """
        inputs, s = self.inputs(raw), self.settings
        score, scale = (self.phi(inputs), inputs.value) if any_ood else self._informative(raw)
        by_cost = s.cost_aware and cost_ratio != 1.0 and any_ood
        ties = (inputs.unclipped,) if any_ood else ()
        if not s.sharpness and not by_cost:
            rows = top_n(score, n, *ties)
            return Ranking(rows, score[rows], inputs)
        u = onto_scale(score, scale)
        if by_cost:
            a, b = self.calibration
            weight = min(1.0, known_per_class / s.cost_after) if s.cost_after else 1.0
            u = u - weight * log_cost(torch.sigmoid(a * inputs.log_odds + b), cost_ratio)
        trust = min(1.0, max(0.25, known_per_class / s.sure_after))
        final = drawn(s.sharpness * trust * u, uniform) if s.sharpness else u
        rows = top_n(final, n, *ties)
        return Ranking(rows, final[rows], inputs)

    def _informative(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        informativeness = raw[:, self.informativeness]
        return informativeness, log_informativeness(informativeness)

    # -- learning ------------------------------------------------------------------------------------------------------

    def learn(
        self,
        sets: Sequence[tuple[Tensor, QuerySet]],
        log_odds: Tensor,
        is_known: Tensor,
        generator: torch.Generator,
        *,
        any_ood: bool = False,
    ) -> None:
        """Fit the net to answered queries (raw scores and query set of each, oldest first), and the calibration of
        P(known) to the log-odds [n] these items had and what they turned out to be [n].

        Nothing is learned while no answer of the campaign is OOD: purity would have no say. `any_ood` tells of answers
        outside these queries. A newest query that teaches nothing leaves the net as it was.
        """
        if bool((~is_known).any()):
            self.calibration = calibrate(log_odds, is_known)
        if self.combine != "net" or not sets or n_pairs(sets[-1][1].target) < ENOUGH_PAIRS:
            return
        if not any_ood and not any(bool((s.target == 0).any()) for _, s in sets):
            return
        s = self.settings
        n_inputs = self.n_scores + int(s.value_input)
        fresh = start_net(n_inputs, s.form, generator, lead=n_inputs - 1 if s.value_input else None, lean=s.lean)
        start = self.net if s.warm_start and self.net is not None else fresh
        replayed = sets if s.replay is None else sets[-s.replay :]
        used = [self._query_scaled(raw, q) if s.query_scaled else q for raw, q in replayed]
        trained = fit(start, used, s.fit, generator)
        if trained is not start:
            self.net = trained

    def _query_scaled(self, raw: Tensor, query: QuerySet) -> QuerySet:
        """The released code's inputs: exp of purity standardised over the query, informativeness as it is."""
        z = Scaler.fit(raw).z(raw).exp()
        z[:, self.informativeness] = raw[:, self.informativeness].float()
        return QuerySet(z, query.target)

    def state(self) -> Arrays:
        """The net's parameters, if it has any, and the calibration."""
        calibration = {"calibration": torch.tensor(self.calibration, dtype=torch.float64)}
        return calibration | (self.net.state() if self.net is not None else {})

    def restore(self, state: Arrays) -> None:
        """Become what `state` described."""
        a, b = state["calibration"].tolist()
        self.calibration = (a, b)
        self.net = SkylineNet.restored(self.settings.form, state) if "raw_w" in state else None

    # -- on plain arrays, in anybody's loop ----------------------------------------------------------------------------

    def score(self, *scores: Tensor) -> Tensor:
        """Meta-scores [N] of the unlabelled pool from its scores [N] each, purity first; higher = ask first.

        The scores' mean and deviation are kept for the `fit` that follows. Rank by them, or draw with odds in
        proportion to their exp for a batch that is spread.
        """
        raw = self._stacked(scores)
        inputs = self.inputs(raw)
        self._frame = inputs.frame
        if self._history and not any(bool((q.target == 0).any()) for _, q in self._history):
            return self._informative(raw)[0]
        return self.phi(inputs)

    def fit(self, *scores: Tensor, loss: Tensor, is_known: Tensor) -> None:
        """Learn from an answered query: its scores as `score` was given them, its losses [n] and who was known [n].

        `loss` is the cross-entropy of the model that ranked the query at the true class; for junk it is not looked at.
        """
        if self._frame is None:
            raise InputError("score the pool first: its mean and deviation are what the query was standardised with.")
        raw, known = self._stacked(scores), torch.as_tensor(is_known).bool()
        tiny = torch.finfo(torch.float64).tiny
        target = torch.where(known, torch.as_tensor(loss).double().clamp_min(tiny), 0.0)
        if target.shape != (len(raw),):
            raise InputError(f"{len(raw)} items but {len(target)} losses; give one for each item of the query.")
        inputs = self.inputs(raw, self._frame)
        self._history.append((raw, QuerySet(inputs.z, target)))
        self._odds.append(inputs.log_odds)
        self._n_fits += 1
        is_in = torch.cat([q.target > 0 for _, q in self._history])
        self.learn(self._history, torch.cat(self._odds), is_in, self._key.child(self._n_fits).torch())

    def _stacked(self, scores: Sequence[Tensor]) -> Tensor:
        columns = [torch.as_tensor(score).double() for score in scores]
        if len(columns) != self.n_scores or len({column.shape for column in columns}) != 1:
            raise InputError(f"expected {self.n_scores} scores of equal length, purity first; got {len(columns)}.")
        raw = torch.stack(columns, dim=1)
        if not bool(raw.isfinite().all()):
            row = int((~raw.isfinite()).any(dim=1).nonzero()[0])
            raise InputError(f"row {row} holds a score that is not finite: {raw[row].tolist()}.")
        return raw


def settings_with(
    name: str, *, skyline: bool = True, more: Mapping[str, object] | None = None, **changes: object
) -> Recipe:
    """A recipe with some settings changed; None leaves one as it is, `more` names fields of the recipe or its fit."""
    base = recipe(name)
    form = base.form if skyline else replace(base.form, weights="free", straight=False, positive_biases=False)
    given = {key: value for key, value in changes.items() if value is not None} | dict(more or {})
    of_fit = {field.name for field in fields(FitOptions)}
    known = of_fit | {field.name for field in fields(Recipe)}
    for key in given:
        if key not in known:
            raise ConfigError(f"mqnet has no setting '{key}'.{nearest_name(key, known)}")
    fit_options: Any = {key: value for key, value in given.items() if key in of_fit}
    others: Any = {key: value for key, value in given.items() if key not in of_fit}
    return replace(base, **{"form": form, "fit": replace(base.fit, **fit_options), **others})
