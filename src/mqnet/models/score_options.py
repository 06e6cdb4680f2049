"""What target models share of ODIN and ReAct: which options make sense, and where activations are clipped."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mqnet.errors import ConfigError


def check_score_options(odin_temperature: float, odin_perturbation: float, react_percentile: float) -> None:
    """Refuse a temperature, perturbation or percentile that means nothing, by its name."""
    if not 0.0 < odin_temperature < float("inf"):
        raise ConfigError(f"odin_temperature is {odin_temperature}; give a positive number.")
    if not 0.0 <= odin_perturbation < float("inf"):
        raise ConfigError(f"odin_perturbation is {odin_perturbation}; give a number from 0.")
    if not 0.0 < react_percentile <= 100.0:
        raise ConfigError(f"react_percentile is {react_percentile}; give one in (0, 100].")


def react_bound(features: Tensor, percentile: float) -> Tensor:
    """The percentile of all activations [n, D] of the labelled known items; a scalar."""
    return torch.tensor(np.percentile(features.numpy(), percentile), dtype=torch.float32)
