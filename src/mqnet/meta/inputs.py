"""From scores to what the net sees, and from what it says to a ranking."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.meta.recipe import Transform
from mqnet.meta.value import log_value
from mqnet.numerics.scaling import Scaler


@dataclass(frozen=True)
class MetaInput:
    """A round's scores as the net sees them.

    `raw` [N, d]: the scores, the first being purity, number `informativeness` the other; `log_odds` [N]: of being
    known, as far as purity tells; `value` [N]: log expected value; `scaler`: what standardised them; `z` [N, d or
    d + 1]: the net's inputs.
    """

    raw: Tensor
    log_odds: Tensor
    value: Tensor
    scaler: Scaler
    z: Tensor
    informativeness: int

    @property
    def rule_z(self) -> Tensor:
        """Clipped z-scores of purity and informativeness [N, 2], for the fixed rules."""
        return self.scaler.z(self._all)[:, [0, self.informativeness]]

    @property
    def unclipped(self) -> Tensor:
        """Sum of the unclipped z-scores [N]: what breaks ties among clipped corners."""
        return self.scaler.unclipped(self._all).sum(dim=1)

    @property
    def _all(self) -> Tensor:
        return torch.cat([self.raw, self.value[:, None]], dim=1)[:, : len(self.scaler.mean)]


def meta_input(
    raw: Tensor,
    informativeness: int,
    *,
    log_odds: bool,
    value_input: bool,
    transform: Transform,
    scaler: Scaler | None = None,
) -> MetaInput:
    """Standardise scores [N, d], with the scaler of their round if it is given, else one fitted to them.

    A purity score that is no log-odds (`log_odds` false) stands for them by its z-score.
    """
    odds = raw[:, 0] if log_odds else Scaler.fit(raw[:, :1]).z(raw[:, :1])[:, 0].double()
    value = log_value(odds, raw[:, informativeness])
    both = torch.cat([raw, value[:, None]], dim=1) if value_input else raw
    scaler = scaler or Scaler.fit(both)
    z = normal_ranks(both).float() if transform == "rank" else scaler.z(both)
    return MetaInput(raw, odds, value, scaler, z.exp() if transform == "exp" else z, informativeness)


def normal_ranks(columns: Tensor) -> Tensor:
    """Each column's ranks as quantiles of a normal distribution [N, d]: no outlier reaches farther than its rank."""
    ranks = columns.sort(dim=0, stable=True).indices.sort(dim=0, stable=True).indices.double()
    return torch.special.ndtri((ranks + 0.5) / max(len(columns), 1))


def fixed_rule(rule_z: Tensor, name: str) -> Tensor:
    """`sum`: exp(z_P) + exp(z_I); `product`: exp(z_P + z_I) [N] (METHOD 2)."""
    return rule_z.exp().sum(dim=1) if name == "sum" else rule_z.sum(dim=1).exp()


def drawn(scores: Tensor, uniform: Tensor) -> Tensor:
    """Scores [N] plus Gumbel noise from keyed uniform numbers [N]: their order is a draw without replacement.

    The first n are n successive draws with odds in proportion to exp(score). A batch drawn so is spread over what is
    about as good, where the top n crowd on the same few (Kirsch et al. 2023); it stays a prefix of any longer one.
    """
    tiny = torch.finfo(torch.float64).tiny
    return scores - (-uniform.double().clamp_min(tiny).log()).clamp_min(tiny).log()
