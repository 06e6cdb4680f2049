"""Log-odds of being known: what a detector and the labelled neighbourhood say together."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.numerics.products import row_products, unit_rows
from mqnet.numerics.softmax import SPAN
from mqnet.purity.detector import known_log_odds
from mqnet.purity.knn import knn
from mqnet.registry import purity
from mqnet.view import RoundView


@purity("evidence", needs={"embedding"}, log_odds=True)
def evidence(view: RoundView, *, temperature: float = 0.1) -> Tensor:
    """The detector's log-odds, sharpened by a kernel contrast of labelled IN and OOD items [N], float64.

    `m + s z(z(o) + z(c))`: o the log-odds of the (K+1)-output head, with mean m and deviation s over the pool;
    `c = log mean_IN exp(cos / T) - log mean_OOD exp(cos / T)`, cosines around the pool's mean; z standardises over the
    pool. The two err differently: a head extrapolates, neighbours do not (figures in docs/findings.md). Without OOD
    answers `knn`; constant without IN.
    """
    if not temperature >= 0.02:
        raise ConfigError(f"evidence: temperature is {temperature}; give 0.02 or more.")
    if not bool(view.labelled.known.any()):
        return torch.zeros(len(view), dtype=torch.float64)
    if view.n_ood == 0:
        return knn(view).double()
    odds, contrast = known_log_odds(view), _kernel_contrast(view, temperature)
    return odds.mean() + odds.std(correction=0) * _z(_z(odds) + _z(contrast))


def _kernel_contrast(view: RoundView, temperature: float) -> Tensor:
    known, pool = view.labelled.known, view.column("embedding")
    centre = torch.stack([rows.sum(0, dtype=torch.float64) for rows in pool.split(SPAN)]).sum(0) / max(len(pool), 1)
    units = unit_rows(view.labelled.column("embedding").float() - centre.float())
    inside, outside = (units[which] / (temperature * math.log(2.0)) for which in (known, ~known))
    parts: list[Tensor] = []
    for rows in pool.split(SPAN):
        unit = unit_rows(rows.float() - centre.float())
        # cosines are at most 1: powers of two cannot overflow for T >= 0.012, and cost a third of torch's exp;
        # the means' denominators shift every item alike, and standardising removes them
        sums = [row_products(unit, others).exp2_().sum(dim=1).double() for others in (inside, outside)]
        parts.append(sums[0].log() - sums[1].log())
    return torch.cat(parts)


def _z(values: Tensor) -> Tensor:
    deviation = values.std(correction=0)
    return (values - values.mean()) / torch.where(deviation > 0, deviation, 1.0)
