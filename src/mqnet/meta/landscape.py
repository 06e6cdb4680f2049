"""The learned score over the plane of purity and informativeness, and what it says of single items."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.meta.inputs import MetaInput
from mqnet.meta.net import MetaNet
from mqnet.meta.value import log_value

STEP = 1e-3  # of the central differences, in deviations


@dataclass(frozen=True)
class Landscape:
    """Phi over the plane of z-scores: `axis` [G] for both directions, `phi` [G, G] with a row per purity."""

    axis: Tensor
    phi: Tensor


def phi_at(meta: MetaNet, inputs: MetaInput, purity_z: Tensor, informativeness_z: Tensor) -> Tensor:
    """Phi [m] at places (z_P, z_I) of a round; further inputs stand at their mean, the value moves with the two."""
    scaler, d = inputs.scaler, inputs.raw.shape[1]
    z = torch.zeros(len(purity_z), d, dtype=torch.float64)
    z[:, 0], z[:, inputs.informativeness] = purity_z, informativeness_z
    raw = scaler.mean[:d] + z * scaler.std[:d]
    odds = raw[:, 0] if meta.log_odds else z[:, 0]
    value = log_value(odds, raw[:, inputs.informativeness], inputs.frame.span)
    if meta.settings.value_input:
        z = torch.cat([z, scaler.z(torch.cat([raw, value[:, None]], 1))[:, -1:].double()], dim=1)
    z = z.clamp(-scaler.clip, scaler.clip)
    here = MetaInput(
        raw, odds, value, inputs.frame, z.exp() if meta.settings.transform == "exp" else z, inputs.informativeness
    )
    return meta.phi(here)


def landscape(meta: MetaNet, inputs: MetaInput, resolution: int = 81) -> Landscape:
    """Phi on a grid over the clip's square."""
    axis = torch.linspace(-inputs.scaler.clip, inputs.scaler.clip, resolution, dtype=torch.float64)
    p, i = torch.meshgrid(axis, axis, indexing="ij")
    return Landscape(axis, phi_at(meta, inputs, p.flatten(), i.flatten()).reshape(resolution, resolution))


def tangent_slope(meta: MetaNet, inputs: MetaInput, row: int) -> float:
    """Slope dP/dI of the line of equal Phi through an item: the more negative, the more informativeness counts.

    `-(dPhi/dz_I) / (dPhi/dz_P)` by central differences; -inf where purity does not count at all.
    """
    return mean_slope(meta, inputs, torch.tensor([row]))


def mean_slope(meta: MetaNet, inputs: MetaInput, rows: Tensor) -> float:
    """The same for several items at once: the ratio of their mean derivatives.

    A single item may lie where Phi is flat in one direction, and its slope says nothing then; a query's does.
    """
    places = inputs.rule_z[rows].double()
    p, i = places[:, 0], places[:, 1]
    by_purity = (phi_at(meta, inputs, p + STEP, i) - phi_at(meta, inputs, p - STEP, i)).sum()
    by_informativeness = (phi_at(meta, inputs, p, i + STEP) - phi_at(meta, inputs, p, i - STEP)).sum()
    return -float(by_informativeness / by_purity) if by_purity > 0 else float("-inf")
