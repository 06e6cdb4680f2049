"""SkylineNet: a 2-layer perceptron that no input can lower (the paper's skyline constraint, by construction)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from mqnet.errors import ConfigError, StoreError
from mqnet.types import Arrays

HIDDEN = 64
CHUNK = (
    16_384  # rows scored at once: small enough for the cache, and below torch's threshold for splitting over threads
)
PAD = 64  # a multiple of every vector width: no row falls into a scalar remainder, whose exp rounds differently
SLOPE = 1e-3  # of the straight term: saturated units alone would make a constant of the net
BOUND = 1e3  # of weights and biases as they are used: no update can bring an infinity in

Weights = Literal["softplus", "relu", "free"]
Start = Literal["spread", "torch", "uniform"]


@dataclass(frozen=True)
class Form:
    """Which perceptron it is.

    `weights`: how parameters become weights: `softplus` (positive, alive everywhere), `relu` (the paper's), `free`
    (no skyline constraint: the ablation). `sigmoid_output` and `positive_biases` are the paper's; `straight` adds a
    slope of 0.001 on every input. `start`: `spread` (small weights, thresholds over the inputs' range), `torch`
    (PyTorch's usual), `uniform` ([0, 1], the released code's).
    """

    weights: Weights = "softplus"
    sigmoid_output: bool = False
    positive_biases: bool = False
    straight: bool = True
    start: Start = "spread"


FORMS: Mapping[str, Form] = {
    "default": Form(),
    # departures of the default from the paper, each measured: see METHOD 2 and docs/findings.md
    "paper": Form(weights="relu", sigmoid_output=True, positive_biases=True, straight=False, start="torch"),
    "reference": Form(weights="relu", straight=False, start="uniform"),
}


@dataclass(frozen=True)
class SkylineNet:
    """`Phi(z) = b2 + sum_h v_h sigmoid(w_h . z + b_h)` with positive w and v, for d >= 1 inputs; 64 d + 129 parameters.

    Parameters are raw; `weights()` gives them as used. They are float64: a difference of 0.01 in the inputs must show
    in the score however large the weights have grown.
    """

    form: Form
    raw_w: Tensor  # [d, 64]
    b1: Tensor  # [64]
    raw_v: Tensor  # [64]
    b2: Tensor  # []

    @property
    def n_inputs(self) -> int:
        """How many scores it combines."""
        return self.raw_w.shape[0]

    def parameters(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The raw parameters, in the order of the fields."""
        return self.raw_w, self.b1, self.raw_v, self.b2

    def with_parameters(self, parameters: tuple[Tensor, ...]) -> SkylineNet:
        """The same form with other parameters."""
        raw_w, b1, raw_v, b2 = parameters
        return replace(self, raw_w=raw_w, b1=b1, raw_v=raw_v, b2=b2)

    def weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Weights and biases as used: positive where the form says so, never beyond 1,000, differentiable."""
        positive = {"softplus": softplus, "relu": torch.relu, "free": lambda t: t}[self.form.weights]
        bias = torch.relu if self.form.positive_biases else lambda t: t
        w, v = positive(self.raw_w).clamp(-BOUND, BOUND), positive(self.raw_v).clamp(-BOUND, BOUND)
        return w, bias(self.b1).clamp(-BOUND, BOUND), v, bias(self.b2).clamp(-BOUND, BOUND)

    def forward(self, z: Tensor) -> Tensor:
        """Phi [n] of inputs [n, d], differentiable: for training."""
        w, b1, v, b2 = self.weights()
        phi = torch.sigmoid(z @ w + b1) @ v + b2
        if self.form.straight:
            phi = phi + SLOPE * z.sum(dim=1)
        return torch.sigmoid(phi) if self.form.sigmoid_output else phi

    def score(self, z: Tensor) -> Tensor:
        """Phi [N] in float64 of inputs [N, d]: equal rows get equal scores, whatever batch they are in.

        Only element-wise operations on padded chunks touch a row, always in the same order; a matrix product would
        round a row differently with the batch around it. Time O(64 N d), memory O(N + chunk).
        """
        with torch.no_grad():
            w, b1, v, b2 = self.weights()
        out = torch.empty(len(z), dtype=torch.float64)
        for start in range(0, len(z), CHUNK):
            part = z[start : start + CHUNK]
            columns = torch.zeros(z.shape[1], math.ceil(len(part) / PAD) * PAD, dtype=torch.float64)
            columns[:, : len(part)] = part.T
            out[start : start + CHUNK] = self._score(columns, w, b1, v, b2)[: len(part)]
        return out

    def _score(self, columns: Tensor, w: Tensor, b1: Tensor, v: Tensor, b2: Tensor) -> Tensor:
        phi = torch.full_like(columns[0], float(b2))
        if self.form.straight:
            for column in columns:
                phi.add_(column, alpha=SLOPE)
        for h in range(w.shape[1]):
            unit = columns[0] * float(w[0, h])
            for column, weight in zip(columns[1:], w[1:, h].tolist(), strict=True):
                unit.add_(column, alpha=weight)
            phi.add_(unit.add_(float(b1[h])).sigmoid_(), alpha=float(v[h]))
        return phi.sigmoid_() if self.form.sigmoid_output else phi

    def state(self) -> Arrays:
        """The parameters by name."""
        return {"raw_w": self.raw_w, "b1": self.b1, "raw_v": self.raw_v, "b2": self.b2}

    @classmethod
    def restored(cls, form: Form, state: Mapping[str, Tensor]) -> SkylineNet:
        """The net whose `state` this is."""
        try:
            return cls(form, state["raw_w"], state["b1"], state["raw_v"], state["b2"])
        except KeyError as error:
            raise StoreError(f"the stored net lacks {error}.") from error


def start_net(
    n_inputs: int, form: Form, generator: torch.Generator, *, lead: int | None = None, lean: float = 0.01
) -> SkylineNet:
    """A net before training. With `lead`, a spread start rises along that input, and with weights `lean` the others."""
    if n_inputs < 1:
        raise ConfigError("a meta-query net needs at least one input")
    if form.start == "uniform":
        raw = [torch.rand(shape, generator=generator, dtype=torch.float64) for shape in _shapes(n_inputs)]
    elif form.start == "torch":
        fans = (n_inputs, n_inputs, HIDDEN, HIDDEN)
        raw = [
            (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1) / math.sqrt(fan)
            for shape, fan in zip(_shapes(n_inputs), fans, strict=True)
        ]
    else:
        raw = _spread(n_inputs, form, generator, lead, lean)
    return SkylineNet(form, *raw)


def _shapes(n_inputs: int) -> tuple[tuple[int, ...], ...]:
    return (n_inputs, HIDDEN), (HIDDEN,), (HIDDEN,), ()


def _spread(n_inputs: int, form: Form, generator: torch.Generator, lead: int | None, lean: float) -> list[Tensor]:
    """Nearly straight ramps of slope 1 per deviation: small weights, thresholds evenly over +-2 deviations."""
    weight = 0.3 if lead is None else 0.5
    jitter = 0.5 + torch.rand(n_inputs, HIDDEN, generator=generator, dtype=torch.float64)
    w = (weight if lead is None else lean) * jitter
    if lead is not None:
        w[lead] = weight
    thresholds = torch.linspace(-2.0, 2.0, HIDDEN, dtype=torch.float64)
    v = torch.full((HIDDEN,), 4.0 / (HIDDEN * weight), dtype=torch.float64)
    # the inverse of softplus, so that the weights come out as stated
    raw = (lambda t: t + torch.log(-torch.expm1(-t))) if form.weights == "softplus" else (lambda t: t)
    return [raw(w), -thresholds * w.sum(dim=0), raw(v), torch.zeros((), dtype=torch.float64)]
