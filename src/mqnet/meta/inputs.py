"""From scores to what the net sees, and from what it says to a ranking."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.meta.recipe import Transform
from mqnet.meta.value import log_value
from mqnet.numerics.scaling import Scaler


@dataclass(frozen=True)
class Frame:
    """What a round's pool lays down for whatever is looked at beside it: fitted once, applied alike to every item.

    `scaler`: of all inputs; `purity`: of the purity score alone, which stands for log-odds where it is none; `span`
    [2]: the least and the largest informativeness; `ordered` [N, d]: each input's values in order, for ranks as inputs.
    """

    scaler: Scaler
    purity: Scaler
    span: Tensor
    ordered: Tensor | None = None


@dataclass(frozen=True)
class MetaInput:
    """A round's scores as the net sees them.

    `raw` [N, d]: the scores, the first being purity, number `informativeness` the other; `log_odds` [N]: of being
    known, as far as purity tells; `value` [N]: log expected value; `frame`: what standardised them; `z` [N, d or
    d + 1]: the net's inputs.
    """

    raw: Tensor
    log_odds: Tensor
    value: Tensor
    frame: Frame
    z: Tensor
    informativeness: int

    @property
    def scaler(self) -> Scaler:
        """Mean and deviation of the inputs over the round's pool."""
        return self.frame.scaler

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
    frame: Frame | None = None,
) -> MetaInput:
    """Standardise scores [N, d] in the frame of their round's pool, or as that pool where no frame is given.

    A purity score that is no log-odds (`log_odds` false) stands for them by its z-score.
    """
    purity = frame.purity if frame is not None else Scaler.fit(raw[:, :1])
    span = frame.span if frame is not None else _span(raw[:, informativeness])
    odds = raw[:, 0] if log_odds else purity.z(raw[:, :1])[:, 0].double()
    value = log_value(odds, raw[:, informativeness], span)
    both = torch.cat([raw, value[:, None]], dim=1) if value_input else raw
    if frame is None:
        frame = Frame(Scaler.fit(both), purity, span, both.sort(dim=0).values if transform == "rank" else None)
    z = normal_ranks(both, frame.ordered).float() if frame.ordered is not None else frame.scaler.z(both)
    return MetaInput(raw, odds, value, frame, z.exp() if transform == "exp" else z, informativeness)


def _span(informativeness: Tensor) -> Tensor:
    return torch.stack(informativeness.aminmax()) if len(informativeness) else torch.zeros(2, dtype=torch.float64)


def normal_ranks(columns: Tensor, ordered: Tensor | None = None) -> Tensor:
    """Each column's ranks among `ordered` [M, d] as quantiles of a normal distribution [N, d].

    No outlier reaches farther than its rank; equal values share their mean rank, so a constant column gives zeros.
    """
    among = (columns.sort(dim=0).values if ordered is None else ordered).T.contiguous()
    values = columns.to(among.dtype).T.contiguous()
    below, up_to = (torch.searchsorted(among, values, right=right).double() for right in (False, True))
    n = max(among.shape[1], 1)
    return torch.special.ndtri(((below + up_to) / (2 * n)).clamp(0.5 / n, 1 - 0.5 / n)).T


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
