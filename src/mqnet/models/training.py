"""Training of an image model: a fixed number of steps on images that lie on the device, interruptible at any of them.

What a step sees is a function of the key and the step alone: which images (endless shuffles of the training set), and
the uniform numbers behind their augmentation and dropout. They are drawn on the CPU, for a block of steps at once, and
sent to the device without waiting. Nothing in a step asks the device for a number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from mqnet.errors import ConfigError, PoolError
from mqnet.models.augment import Augmentation, Flip, FlipCrop, normalised
from mqnet.models.checkpoints import Checkpoints, Saver
from mqnet.models.devices import DeviceName, Engine, ImagePrecision
from mqnet.models.encode import Watcher
from mqnet.models.head import CUT_OFF, LossPrediction, UnknownAware
from mqnet.models.loss_prediction import loss_ranking
from mqnet.models.target_net import Said, TargetNet, load_tensors, place, plain_tensors
from mqnet.rng import Key
from mqnet.types import Arrays

BLOCK = 32
"""Steps whose draws are made and sent together."""

Augment = Literal["flip_crop", "flip", "off"]


@dataclass(frozen=True)
class ImageRecipe:
    """How an image model is trained; METHOD 4's settings where nothing else is said."""

    n_steps: int = 20_000
    batch_size: int = 64
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    augment: Augment = "flip_crop"
    """Padded crops move an image by up to an eighth of its side: 4 pixels of 32."""
    dropout: float = 0.0
    loss_prediction: LossPrediction = "detached"
    unknown_aware: UnknownAware = "off"
    exposure_weight: float = 0.5
    device: DeviceName = "auto"
    precision: ImagePrecision = "auto"
    compile: bool = False
    processes: int = 1
    """Data-parallel processes on this machine, one per GPU; needs `pip install "mqnet[accelerate]"`."""

    def __post_init__(self) -> None:
        if min(self.n_steps, self.batch_size, self.processes) < 1:
            raise ConfigError("n_steps, batch_size and processes must be at least 1.")
        if self.batch_size < 2:
            raise ConfigError("batch_size is 1; batch normalisation needs at least two images at a time.")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"dropout is {self.dropout}; give a rate in [0, 1).")
        for name, value, low in (("lr", self.lr, 0.0), ("momentum", self.momentum, -1.0)):
            if not low < value < float("inf") or (name == "momentum" and not 0.0 <= value < 1.0):
                raise ConfigError(f"{name} is {value}; give a positive number (momentum in [0, 1)).")
        if not 0.0 <= self.weight_decay < float("inf"):
            raise ConfigError(f"weight_decay is {self.weight_decay}; give a number from 0.")

    def lr_at(self, step: int) -> float:
        """The learning rate: a tenth from half of the steps on, a hundredth from three quarters on."""
        tenths = (2 * step >= self.n_steps) + (4 * step >= 3 * self.n_steps)
        return self.lr * 0.1**tenths

    def augmentation(self, size: int) -> Augmentation | None:
        """The change of the training images."""
        changes: dict[Augment, Augmentation | None] = {
            "flip_crop": FlipCrop(padding=size // 8), "flip": Flip(), "off": None,
        }  # fmt: skip
        return changes[self.augment]


@dataclass(frozen=True)
class Resident:
    """The training data on the device: uint8 images [n, 3, S, S], targets [n, outputs], and the pixels' statistics."""

    images: Tensor
    targets: Tensor
    mean: Tensor
    deviation: Tensor

    @staticmethod
    def of(images: Tensor, targets: Tensor, mean: Tensor, deviation: Tensor, engine: Engine) -> Resident:
        """Sent to the device once."""
        return Resident(*(engine.put(tensor) for tensor in (images, targets, mean, deviation)))


@dataclass(frozen=True)
class Share:
    """Which rows of every batch a process works on; alone, all of them.

    Rows i and i + B/2 are a pair of the loss prediction: they go to the same process, and are a pair there again.
    """

    rank: int = 0
    world: int = 1

    def rows(self, n: int) -> Tensor:
        """Row numbers [n / world] of a batch of n."""
        return torch.arange(n).view(2, self.world, -1)[:, self.rank].reshape(-1) if self.world > 1 else torch.arange(n)


class Together(Protocol):
    """What joins the processes of one training."""

    @property
    def share(self) -> Share:
        """This process's part."""
        ...

    def join(self, net: TargetNet, momenta: list[Tensor], step: int) -> tuple[Callable[..., Said], int]:
        """The net to call, whose gradients are those of the whole batch, and the step to go on from.

        Where the first process stands, all stand: weights, buffers, `momenta` (in place) and the step are its own.
        """
        ...


@dataclass(frozen=True)
class Draws:
    """The randomness of a training: which images and which uniform numbers each step gets."""

    key: Key
    n_items: int
    batch: int
    per_image: int

    def block(self, number: int) -> tuple[Tensor, Tensor]:
        """Rows [BLOCK, B] of the training set and numbers [BLOCK, B, per_image] in [0, 1)."""
        size = BLOCK * self.batch
        uniform = torch.rand(BLOCK, self.batch, self.per_image, generator=self.key.child("draws", number).torch())
        return self._order(number * size, size).view(BLOCK, self.batch), uniform

    def _order(self, first: int, n: int) -> Tensor:
        """Places first .. first + n - 1 of the training set shuffled again and again."""
        epoch, skipped = divmod(first, self.n_items)
        last = (first + n - 1) // self.n_items
        shuffles = [
            torch.randperm(self.n_items, generator=self.key.child("epoch", e).torch()) for e in range(epoch, last + 1)
        ]
        return torch.cat(shuffles)[skipped : skipped + n]


def train(
    net: TargetNet,
    data: Resident,
    recipe: ImageRecipe,
    key: Key,
    engine: Engine,
    *,
    joint: bool = False,
    saver: Saver | None = None,
    watch: Watcher | None = None,
    together: Together | None = None,
) -> None:
    """Train `net` in place for `recipe.n_steps` steps of SGD on the mean of `-sum_c t_c log softmax(logits)_c`.

    The branch learns by its ranking loss; `joint` lets its gradient into the net for the first 60% of the steps.
    """
    place(net, engine.device)
    net.train()
    optimiser = torch.optim.SGD(
        net.parameters(), lr=recipe.lr, momentum=recipe.momentum, weight_decay=recipe.weight_decay, fused=True
    )
    first = _resume(net, optimiser, saver)
    call: Callable[..., Said] = net
    own = Share().rows(recipe.batch_size)
    if together is not None:
        call, first = together.join(net, _momenta(net, optimiser), first)
        own = together.share.rows(recipe.batch_size)
    if recipe.compile:
        call = cast("Callable[..., Said]", torch.compile(call))
    change = recipe.augmentation(data.images.shape[-1])
    n_changes = change.n_draws if change is not None else 0
    per_image = n_changes + (net.backbone.dim if recipe.dropout else 0)
    draws = Draws(key, len(data.images), recipe.batch_size, per_image)
    loss_of = _Step(call, data, recipe, engine, change, n_changes)
    rows = uniform = torch.empty(0)
    wait = engine.mark()
    with engine.repeatable():
        for step in range(first, recipe.n_steps):
            at = step % BLOCK
            if step == first or at == 0:
                rows, uniform = (engine.put(part[:, own].contiguous()) for part in draws.block(step // BLOCK))
                wait()  # at most one block ahead of the device: progress is honest and memory bounded
                wait = engine.mark()
            for group in optimiser.param_groups:
                group["lr"] = recipe.lr_at(step)
            optimiser.zero_grad(set_to_none=True)
            loss_of(rows[at], uniform[at], joint and step < CUT_OFF * recipe.n_steps).backward()
            optimiser.step()
            if (engine.cuda and at < BLOCK - 1) and step + 1 < recipe.n_steps:
                continue
            if watch is not None:
                watch(step + 1, recipe.n_steps)
            if saver is not None and saver.due() and step + 1 < recipe.n_steps:
                saver.save(_state(net, optimiser, step + 1))
    _check_finite(net, recipe)
    if saver is not None:
        saver.save(_state(net, optimiser, recipe.n_steps))


@dataclass(frozen=True)
class _Step:
    """The loss of one batch."""

    call: Callable[..., Said]
    data: Resident
    recipe: ImageRecipe
    engine: Engine
    change: Augmentation | None
    n_changes: int

    def __call__(self, rows: Tensor, uniform: Tensor, joint: bool) -> Tensor:
        images = self.data.images[rows]
        if self.change is not None:
            images = self.change(images, uniform[:, : self.n_changes])
        ready = ready_images(images, self.data.mean, self.data.deviation, self.engine)
        rate = self.recipe.dropout
        mask = (uniform[:, self.n_changes :] >= rate).float() / (1.0 - rate) if rate else None
        with self.engine.autocast():
            said = self.call(ready, mask, joint)
        losses = functional.cross_entropy(said.logits, self.data.targets[rows], reduction="none")
        loss = losses.mean()
        return loss if said.predicted is None else loss + loss_ranking(said.predicted, losses)


def ready_images(images: Tensor, mean: Tensor, deviation: Tensor, engine: Engine) -> Tensor:
    """uint8 images as the nets take them: normalised, pixels of one place side by side, in the engine's precision."""
    unit = images.to(torch.float32, memory_format=torch.channels_last).div_(255.0)
    ready = normalised(unit, mean, deviation)
    return ready.bfloat16() if engine.bfloat16 else ready


def _momenta(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """The optimiser's memory of every parameter, in the parameter's own layout; zeros before the first step.

    With zeros the first step does what it does without any: `m <- momentum m + g`.
    """
    out: list[Tensor] = []
    for parameter in net.parameters():
        state = optimiser.state[parameter]
        if state.get("momentum_buffer") is None:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        out.append(state["momentum_buffer"])
    return out


def _state(net: TargetNet, optimiser: torch.optim.Optimizer, step: int) -> Arrays:
    state = {f"net.{name}": tensor for name, tensor in plain_tensors(net).items()}
    for i, momentum in enumerate(_momenta(net, optimiser)):
        state[f"momentum.{i}"] = momentum.detach().to("cpu", copy=True).contiguous()
    return {**state, "step": torch.tensor(step)}


def _resume(net: TargetNet, optimiser: torch.optim.Optimizer, saver: Saver | None) -> int:
    momenta = _momenta(net, optimiser)
    state = saver.checkpoints.load(saver.name) if saver is not None else None
    if state is None:
        return 0
    load_tensors(net, {name.removeprefix("net."): t for name, t in state.items() if name.startswith("net.")})
    for i, momentum in enumerate(momenta):
        momentum.copy_(state[f"momentum.{i}"])
    return int(state["step"])


def _check_finite(net: nn.Module, recipe: ImageRecipe) -> None:
    for name, tensor in net.state_dict().items():
        if not bool(tensor.isfinite().all()):
            raise PoolError(
                f"the training diverged: '{name}' is not finite after {recipe.n_steps} steps. "
                f"Lower lr (it is {recipe.lr:g}), or look at the images with `mqnet doctor`."
            )


def name_of(*parts: Any) -> str:
    """A name for a training from everything that defines it; tensors count by content."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, Tensor):
            content = part.detach().cpu().contiguous()
            digest.update(f"{content.dtype}{tuple(content.shape)}".encode())
            digest.update(content.numpy().data)
        else:
            digest.update(f"\x1f{part!r}".encode())
    return digest.hexdigest()


def saver_for(checkpoints: Checkpoints | None, name: str) -> Saver | None:
    """Where a training of this name saves, if there is a place."""
    return Saver(checkpoints, name) if checkpoints is not None else None
