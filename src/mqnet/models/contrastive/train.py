"""Training a contrastive coder: a fixed number of steps, each a function of the key and its number alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from mqnet.errors import ConfigError, PoolError
from mqnet.ids import ItemIds
from mqnet.models.augment import normalised, to_unit
from mqnet.models.checkpoints import Saver
from mqnet.models.contrastive.coder import Coder, CoderNet, load_net
from mqnet.models.contrastive.config import CoderConfig, Kind
from mqnet.models.contrastive.lars import Lars
from mqnet.models.contrastive.loss import nt_xent, rotation_labels
from mqnet.models.contrastive.views import random_views
from mqnet.models.devices import Engine
from mqnet.models.encode import Watcher
from mqnet.numerics.threads import one_thread
from mqnet.rng import Key
from mqnet.types import Arrays, Pool

RESIDENT_SHARE = 0.3
"""Of a GPU's memory: a pool up to this size is kept there as bytes, of a larger one each step loads its images."""

RESIDENT_BYTES = 4 * 2**30
"""The same on a processor."""

BLOCK = 32
"""Steps that may be asked of a device ahead of its work: progress is honest."""

LEAST_DEVIATION = 0.02
"""Of a colour over the pool: a pool of one colour is not blown up."""


@dataclass
class Training:
    """A coder in the making: `step` steps are done, and every later one is determined."""

    kind: Kind
    config: CoderConfig
    images: Images
    engine: Engine
    key: Key
    net: CoderNet
    optimiser: Lars
    mean: Tensor
    deviation: Tensor
    step: int = 0

    @property
    def n_steps(self) -> int:
        """Steps of the whole training."""
        return self.config.n_steps(len(self.images))

    def advance(self) -> Tensor:
        """One step; returns its loss [], which nobody has to wait for."""
        config = self.config
        views = random_views(
            to_unit(self.images.batch(self._rows())), self.kind, config, self.key.child("step", self.step).torch()
        )
        pictures = normalised(views, self.mean, self.deviation).contiguous(memory_format=torch.channels_last)
        self.net.train()
        with self.engine.autocast():
            _, projected, turns = self.net(pictures)
        loss = nt_xent(projected, config.temperature)
        if turns is not None:
            told_apart = functional.cross_entropy(turns.float(), rotation_labels(len(views) // 8, views.device))
            loss = loss + config.rotation_weight * told_apart
        gradients = torch.autograd.grad(loss, self.optimiser.weights)
        self.optimiser.step(gradients, config.rate(self.step, self.n_steps))
        self.step += 1
        return loss.detach()

    def _rows(self) -> Tensor:
        """The rows of this step's images: every epoch goes through the pool in an order of its own."""
        epoch, place = divmod(self.step, self.config.steps_per_epoch(len(self.images)))
        if self._order_of != epoch:
            self._order = torch.randperm(len(self.images), generator=self.key.child("epoch", epoch).torch())
            self._order_of = epoch
        return self._order[place * self.config.batch_size :][: self.config.batch_size]

    def __post_init__(self) -> None:
        self._order_of, self._order = -1, torch.empty(0, dtype=torch.long)

    def state(self) -> Arrays:
        """Everything that the remaining steps depend on."""
        velocity = {name: v.detach().cpu().contiguous() for name, v in self._velocities()}
        return {**self.coder().state(), **velocity, "step": torch.tensor(self.step)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` described."""
        load_net(self.net, state)
        for name, velocity in self._velocities():
            velocity.copy_(state[name])
        self.step = int(state["step"])

    def _velocities(self) -> list[tuple[str, Tensor]]:
        names = [f"velocity.{name}" for name, _ in self.net.named_parameters()]
        return list(zip(names, self.optimiser.velocity, strict=True))

    def coder(self) -> Coder:
        """The coder as it is now."""
        return Coder(self.kind, self.config, self.net, self.mean, self.deviation, self.engine.device)


class Images:
    """The pool's images in the order of their ids: bytes on the device, or loaded step by step where they are many."""

    def __init__(self, pool: Pool, engine: Engine) -> None:
        self._pool, self._ids, self._engine = pool, pool.ids.sorted(), engine
        first = pool.load(self._ids.take(slice(0, 1)))
        if first.ndim != 4 or first.dtype != torch.uint8:
            raise PoolError(
                f"a contrastive coder learns from images, uint8 [N, 3, S, S]; the pool holds {first.dtype}."
            )
        self.size = int(first.shape[-1])
        self._resident: Tensor | None = None
        if first.numel() * len(self._ids) <= _room(engine):
            self._resident = engine.put(pool.load(self._ids))

    def batch(self, rows: Tensor) -> Tensor:
        """The images of these rows, on the device."""
        if self._resident is not None:
            return self._resident[self._engine.put(rows)]
        order = rows.argsort()  # a mapped file is read in its own order
        loaded = self._pool.load(self._ids.take(rows[order].numpy()))
        return self._engine.put(loaded[order.argsort()])

    def chunks(self, size: int = 2048) -> list[tuple[slice, ItemIds]]:
        """Consecutive pieces of all the images' ids."""
        return list(self._ids.chunks(size))

    def load(self, ids: ItemIds) -> Tensor:
        """The images of a piece."""
        return self._pool.load(ids)

    def __len__(self) -> int:
        return len(self._ids)


def begin(pool: Pool, kind: Kind, config: CoderConfig, key: Key) -> Training:
    """A training before its first step."""
    engine = Engine.choose(config.device, config.precision)
    images, device = Images(pool, engine), engine.device
    mean, deviation = colours(images)
    net = CoderNet(kind, config, images.size, key.child("start").torch())
    net.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimiser = Lars(
        list(net.parameters()), trust=config.trust, momentum=config.momentum, weight_decay=config.weight_decay
    )
    return Training(kind, config, images, engine, key, net, optimiser, mean.to(device), deviation.to(device))


def train_coder(
    pool: Pool, kind: Kind, config: CoderConfig, key: Key, *, saver: Saver | None = None, watch: Watcher | None = None
) -> Coder:
    """A coder trained on every item of the pool, whatever their order; `key` is its only randomness.

    A training that finds what a killed one saved goes on from there, to the same coder bit for bit.
    """
    with one_thread():
        training = begin(pool, kind, config, key)
        saved = saver.checkpoints.load(saver.name) if saver is not None else None
        if saved is not None:
            training.restore(saved)
        loss, wait = torch.zeros(()), training.engine.mark()
        with training.engine.repeatable():
            while training.step < training.n_steps:
                loss = training.advance()
                if training.step % BLOCK == 0:
                    wait()
                    wait = training.engine.mark()
                if saver is not None and saver.due():
                    _check(loss, training)
                    saver.save(training.state())
                if watch is not None:
                    watch(training.step, training.n_steps)
        _check(loss, training)
        return training.coder()


def _room(engine: Engine) -> float:
    if not engine.cuda:
        return RESIDENT_BYTES
    return RESIDENT_SHARE * torch.cuda.get_device_properties(engine.device).total_memory


def _check(loss: Tensor, training: Training) -> None:
    if not bool(loss.isfinite()):
        raise ConfigError(
            f"the {training.kind} coder's loss is not finite after {training.step} steps: lower `lr` in [coder]."
        )


def colours(images: Images) -> tuple[Tensor, Tensor]:
    """Mean and deviation [3] of the pool's colours in [0, 1]."""
    total, squares, n = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), 0
    for _, ids in images.chunks():
        pixels = to_unit(images.load(ids)).double()
        total += pixels.sum(dim=(0, 2, 3))
        squares += pixels.square().sum(dim=(0, 2, 3))
        n += pixels[:, 0].numel()
    mean = total / n
    deviation = (squares / n - mean.square()).clamp(min=0.0).sqrt().clamp(min=LEAST_DEVIATION)
    return mean.float(), deviation.float()
