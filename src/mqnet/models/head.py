"""An MLP head over frozen features: standardise -> linear -> ReLU -> linear, with an optional loss-prediction branch.

Forward, backward and the optimiser are written out: autograd's bookkeeping would be most of the time of so small a net
(a test compares the gradients). Adam keeps ONE second moment per tensor: with one per weight every column steps as far
as any other, the noise columns of a PCA too (CIFAR-10 embeddings, 4 classes, 60 labels: accuracy .828 against .860).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict

import torch
from torch import Tensor
from torch.nn import functional

from mqnet.errors import ConfigError, InputError, PoolError, StoreError
from mqnet.numerics.threads import one_thread

Precision = Literal["float32", "bfloat16"]
LossPrediction = Literal["off", "detached", "joint"]
UnknownAware = Literal["off", "extra_class", "outlier_exposure"]

LOSS_HIDDEN = 32  # units of the loss-prediction branch
LOSS_MARGIN = 1.0  # Yoo & Kweon 2019
CUT_OFF = 0.6  # share of the training after which the branch's gradient no longer reaches the hidden layer


@dataclass(frozen=True)
class HeadConfig:
    """Training recipe of the head; the defaults are measured (docs/findings.md)."""

    hidden: int = 128
    n_steps: int = 200
    batch_size: int = 64
    lr: float = 3e-3
    weight_decay: float = 1.0
    dropout: float = 0.3
    precision: Precision = "float32"
    loss_prediction: LossPrediction = "detached"
    unknown_aware: UnknownAware = "off"
    exposure_weight: float = 0.5

    def __post_init__(self) -> None:
        if min(self.hidden, self.n_steps, self.batch_size) < 1:
            raise ConfigError("hidden, n_steps and batch_size must be at least 1")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"dropout is {self.dropout}; give a rate in [0, 1)")


class Encoded(TypedDict):
    """Columns of a chunk of N rows, float32."""

    logits: Tensor  # [N, K]
    features: Tensor  # [N, H], the penultimate layer
    predicted_loss: Tensor  # [N], higher = larger loss expected


@dataclass(frozen=True)
class Head:
    """A fitted head: `logits = relu(((x - mean) / scale) w1 + b1) w2 + b2`, plain float32 tensors.

    Without a loss-prediction branch loss_w2 is zero, and so is `predicted_loss`.
    """

    mean: Tensor  # [D]
    scale: Tensor  # []
    w1: Tensor  # [D, H]
    b1: Tensor  # [H]
    w2: Tensor  # [H, K]
    b2: Tensor  # [K]
    loss_w1: Tensor  # [H, L]
    loss_b1: Tensor  # [L]
    loss_w2: Tensor  # [L]
    dropout: Tensor  # []
    bfloat16: Tensor  # [], bool

    def to_tensors(self) -> dict[str, Tensor]:
        """The head as a flat mapping of contiguous tensors, ready for safetensors."""
        return {name: getattr(self, name).contiguous() for name in Head.__dataclass_fields__}

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor]) -> Head:
        """The head stored by `to_tensors`; a missing or unknown name is an error that lists it."""
        if differing := sorted(set(tensors) ^ set(Head.__dataclass_fields__)):
            raise StoreError(f"stored head does not match this version: {', '.join(differing)}")
        return Head(**tensors)


@one_thread()
def fit_head(
    features: Tensor,
    labels: Tensor,
    n_classes: int,
    config: HeadConfig,
    generator: torch.Generator,
    *,
    unknown: Tensor | None = None,
) -> Head:
    """A head trained for `config.n_steps` Adam steps (cosine decay, decoupled weight decay) from a fresh start.

    Loss: mean over the batch of `-sum_c t_c log softmax(logits)_c`; t is one-hot for a labelled item. `unknown` rows
    (OOD answers) are ignored when `unknown_aware` is off, have t = one-hot of an extra class K that is dropped after
    training (`extra_class`), or t = 1/K weighted by `exposure_weight` (`outlier_exposure`).
    Shapes: features [n, D] float16/32, labels [n] int64 in 0..K-1, unknown [m, D]. Raises InputError for n = 0, labels
    out of range, or non-finite features. Randomness comes from `generator` only; its stream does not depend on the
    loss-prediction branch: detached or absent, the logits are the same bit for bit.
    """
    known = features.float()
    _check(known, labels, n_classes)
    extra = unknown.float() if unknown is not None and config.unknown_aware != "off" else known[:0]
    mean, scale = _standardiser(known)
    rows = (torch.cat([known, extra]) - mean) / scale
    if not bool(rows.isfinite().all()):
        raise PoolError("features hold NaN or infinite values; check the encoder's output")
    targets = soft_targets(labels, n_classes, len(extra), config.unknown_aware, config.exposure_weight)
    branch_seed = int(torch.randint(2**62, (), generator=generator))  # drawn always: keeps the stream the same
    branch = _Branch(config.hidden, torch.Generator().manual_seed(branch_seed))
    net = _Net(rows.shape[1], config.hidden, targets.shape[1], generator)
    adam, branch_adam = _Adam(net.weights, config.weight_decay), _Adam(branch.weights, config.weight_decay)
    for step in range(config.n_steps):
        lr = config.lr * 0.5 * (1.0 + math.cos(math.pi * step / config.n_steps))
        picked = torch.randint(len(rows), (min(config.batch_size, len(rows)),), generator=generator)
        mask = torch.rand(len(picked), config.hidden, generator=generator).ge(config.dropout) / (1.0 - config.dropout)
        hidden, logits = net.forward(rows[picked], mask)
        into_hidden = 0.0
        if config.loss_prediction != "off":
            losses = functional.cross_entropy(logits, targets[picked], reduction="none")
            gradients, through = branch.gradients(hidden, losses)
            into_hidden = through if config.loss_prediction == "joint" and step < CUT_OFF * config.n_steps else 0.0
            branch_adam.step(gradients, lr)
        adam.step(net.gradients(rows[picked], mask, hidden, logits, targets[picked], into_hidden), lr)
    if config.loss_prediction == "off":
        branch.w2.zero_()
    dropout, bfloat16 = torch.tensor(config.dropout), torch.tensor(config.precision == "bfloat16")
    w2, b2 = net.w2[:, :n_classes].clone(), net.b2[:n_classes].clone()
    return Head(mean, scale, net.w1, net.b1, w2, b2, branch.w1, branch.b1, branch.w2, dropout, bfloat16)


def encode(head: Head, chunk: Tensor) -> Encoded:
    """Columns of a chunk [N, D] (float16/32) in eval mode; the two large products in bfloat16 if the head says so."""
    hidden = _hidden(head, chunk)
    predicted = torch.relu(hidden @ head.loss_w1 + head.loss_b1) @ head.loss_w2
    return {"logits": _product(head, hidden, head.w2) + head.b2, "features": hidden, "predicted_loss": predicted}


def mc_logits(head: Head, chunk: Tensor, n_samples: int, generator: torch.Generator) -> Tensor:
    """Logits [T, N, K] under T dropout masks on the penultimate layer, each mask shared by all rows.

    A mask is one sampled network, so a row's result does not depend on its chunk, as long as every chunk gets a
    generator in the same state. A head trained without dropout is sampled at rate 0.3.
    """
    hidden = _hidden(head, chunk)
    rate = float(head.dropout) or 0.3
    masks = (torch.rand(n_samples, head.w2.shape[0], generator=generator) >= rate).float() / (1.0 - rate)
    return torch.stack([hidden @ (mask[:, None] * head.w2) + head.b2 for mask in masks])


def _hidden(head: Head, chunk: Tensor) -> Tensor:
    return torch.relu(_product(head, (chunk.float() - head.mean) / head.scale, head.w1) + head.b1)


def _product(head: Head, left: Tensor, right: Tensor) -> Tensor:
    return (left.bfloat16() @ right.bfloat16()).float() if bool(head.bfloat16) else left @ right


def _check(features: Tensor, labels: Tensor, n_classes: int) -> None:
    if len(features) == 0:
        raise InputError("no labelled item of a known class yet: a head needs at least one")
    if labels.shape != features.shape[:1] or int(labels.min()) < 0 or int(labels.max()) >= n_classes:
        raise InputError(f"labels must be one class in 0..{n_classes - 1} for each of the {len(features)} rows")


def soft_targets(
    labels: Tensor, n_classes: int, n_unknown: int, unknown_aware: UnknownAware, exposure_weight: float
) -> Tensor:
    """What the labelled rows and after them the unknown ones should be told: [n + m, K], K + 1 for an extra class."""
    if unknown_aware == "extra_class":
        return functional.one_hot(functional.pad(labels, (0, n_unknown), value=n_classes), n_classes + 1).float()
    exposed = torch.full((n_unknown, n_classes), exposure_weight / n_classes)
    return torch.cat([functional.one_hot(labels, n_classes).float(), exposed])


def _standardiser(known: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [D] and one positive scale [] of the labelled rows alone: no pass over the pool.

    The scale is the root mean square over all columns: the features of an encoder share their unit, a column that is
    constant in a handful of rows cannot explode elsewhere, and scaling each column by itself measured far worse (.575
    against .828 at 60 labels). A single row is centred on 0; rows that are all alike get scale 1.
    """
    mean = known.mean(0) if len(known) > 1 else torch.zeros_like(known[0])
    scale = (known - mean).square().mean().sqrt()
    return mean, scale if float(scale) > 1e-12 else torch.ones(())


class _Net:
    def __init__(self, d: int, hidden: int, n_outputs: int, generator: torch.Generator) -> None:
        self.w1 = torch.randn(d, hidden, generator=generator) * math.sqrt(2.0 / d)
        self.b1 = torch.zeros(hidden)
        self.w2 = torch.randn(hidden, n_outputs, generator=generator) * (0.1 / math.sqrt(hidden))
        self.b2 = torch.zeros(n_outputs)
        self.weights = [self.w1, self.b1, self.w2, self.b2]

    def forward(self, rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.addmm(self.b1, rows, self.w1).relu_().mul_(mask)
        return hidden, torch.addmm(self.b2, hidden, self.w2)

    def gradients(
        self, rows: Tensor, mask: Tensor, hidden: Tensor, logits: Tensor, targets: Tensor, into_hidden: Tensor | float
    ) -> list[Tensor]:
        """Of the mean soft-target cross-entropy, in the order of `weights`; `into_hidden` is the branch's share."""
        weight = targets.sum(1, keepdim=True)  # below 1 for outlier exposure
        d_logits = (torch.softmax(logits, 1) * weight - targets) / len(rows)
        d_hidden = (d_logits @ self.w2.T + into_hidden) * mask * (hidden > 0)
        return [rows.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_logits, d_logits.sum(0)]


class _Branch:
    """Loss prediction `relu(h A + a) v` trained by the ranking loss `max(0, 1 - sign(l_i - l_j)(p_i - p_j))`."""

    def __init__(self, hidden: int, generator: torch.Generator) -> None:
        self.w1 = torch.randn(hidden, LOSS_HIDDEN, generator=generator) * math.sqrt(2.0 / hidden)
        self.b1 = torch.zeros(LOSS_HIDDEN)
        self.w2 = torch.randn(LOSS_HIDDEN, generator=generator) / math.sqrt(LOSS_HIDDEN)
        self.weights = [self.w1, self.b1, self.w2]

    def gradients(self, hidden: Tensor, losses: Tensor) -> tuple[list[Tensor], Tensor]:
        """With respect to `weights`, and to `hidden` [B, H]. Row i is paired with row i + B/2."""
        inner = torch.addmm(self.b1, hidden, self.w1).relu_()
        predicted, half = inner @ self.w2, len(losses) // 2
        sign = torch.sign(losses[:half] - losses[half : 2 * half])
        short = sign * (predicted[:half] - predicted[half : 2 * half]) < LOSS_MARGIN
        pull = -sign * short / max(half, 1)
        d_predicted = torch.cat([pull, -pull, torch.zeros(len(losses) - 2 * half)])
        d_inner = torch.outer(d_predicted, self.w2).mul_(inner > 0)
        return [hidden.T @ d_inner, d_inner.sum(0), inner.T @ d_predicted], d_inner @ self.w1.T


class _Adam:
    """Adam (0.9, 0.99), weight decay decoupled; a tensor's second moment is the mean of its squared gradient."""

    def __init__(self, weights: list[Tensor], weight_decay: float) -> None:
        self.weights, self.weight_decay, self.n_steps = weights, weight_decay, 0
        self.first = [torch.zeros_like(weight) for weight in weights]
        self.second = [0.0 for _ in weights]

    def step(self, gradients: Iterable[Tensor], lr: float) -> None:
        self.n_steps += 1
        for i, gradient in enumerate(gradients):
            self.first[i].lerp_(gradient, 0.1)
            self.second[i] += 0.01 * (float(gradient.square().mean()) - self.second[i])
            root = math.sqrt(self.second[i] / (1.0 - 0.99**self.n_steps)) + 1e-8
            self.weights[i].mul_(1.0 - lr * self.weight_decay)
            self.weights[i].add_(self.first[i], alpha=-lr / (1.0 - 0.9**self.n_steps) / root)
