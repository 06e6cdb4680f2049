"""One training shared by several processes: each works on its rows of every batch, and all make the same steps."""

from __future__ import annotations

import importlib
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, distributed, nn
from torch.multiprocessing.spawn import start_processes

from mqnet.errors import ConfigError
from mqnet.models.checkpoints import Checkpoints
from mqnet.models.devices import Engine
from mqnet.models.encode import Watcher
from mqnet.models.target_net import Said, TargetNet
from mqnet.models.training import ImageRecipe, Resident, Share, saver_for, train
from mqnet.rng import Key
from mqnet.scale.local import die_with_parent

if TYPE_CHECKING:
    from accelerate import Accelerator

POLL_SECONDS = 0.2


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        total = x.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        # every process's loss depends on every process's x through the sum
        total = gradient.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total


def summed(x: Tensor) -> Tensor:
    """The sum of a tensor over all processes; gradients are summed likewise."""
    return cast(Tensor, _Summed.apply(x))


class GlobalNorm(nn.BatchNorm2d):
    """Batch normalisation by the mean and variance of the whole batch, whichever process holds its rows.

    PyTorch's `SyncBatchNorm` does this on GPUs only; here the sums go through a differentiable all-reduce, on any
    device. Every process holds equally many rows.
    """

    def forward(self, input: Tensor) -> Tensor:
        """The normalised maps [n, C, H, W], in their own precision."""
        if not self.training:
            return super().forward(input)
        x, world = input.float(), distributed.get_world_size()
        n = x.numel() // x.shape[1] * world
        mean = summed(x.sum(dim=(0, 2, 3))) / n
        centred = x - mean.view(1, -1, 1, 1)
        # the mean first, then squares around it: sums of squares alone would lose the digits
        variance = summed(centred.square().sum(dim=(0, 2, 3))) / n
        with torch.no_grad():
            momentum = self.momentum or 0.1
            assert self.running_mean is not None
            assert self.running_var is not None
            assert self.num_batches_tracked is not None
            self.running_mean.lerp_(mean, momentum)
            self.running_var.lerp_(variance * n / (n - 1), momentum)
            self.num_batches_tracked.add_(1)
        scale = self.weight * (variance + self.eps).rsqrt()
        return (centred * scale.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)).to(input.dtype)


def with_global_norm(net: nn.Module) -> None:
    """Every batch normalisation of the net becomes a global one, with the same weights and buffers."""
    for module in net.modules():
        if type(module) is nn.BatchNorm2d:
            module.__class__ = GlobalNorm


def without_global_norm(net: nn.Module) -> None:
    """The reverse of `with_global_norm`."""
    for module in net.modules():
        if type(module) is GlobalNorm:
            module.__class__ = nn.BatchNorm2d  # pyright: ignore[reportAttributeAccessIssue]


@dataclass(frozen=True)
class Accelerated:
    """The processes that `accelerate` knows of."""

    accelerator: Accelerator

    @property
    def share(self) -> Share:
        """This process's part."""
        return Share(self.accelerator.process_index, self.accelerator.num_processes)

    def join(self, net: TargetNet, momenta: list[Tensor], step: int) -> tuple[Callable[..., Said], int]:
        """The net under `accelerate`, everything as in the first process."""
        with_global_norm(net)
        at = torch.tensor([step], device=self.accelerator.device)
        for tensor in (*momenta, at):
            distributed.broadcast(tensor, 0)
        return cast("Callable[..., Said]", self.accelerator.prepare(net)), int(at)


def launched() -> int:
    """How many processes a launcher (`accelerate launch`, `torchrun`) has started of this program; 1 without any."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def train_in_group(
    net: TargetNet,
    data: Resident,
    recipe: ImageRecipe,
    key: Key,
    engine: Engine,
    *,
    joint: bool,
    checkpoints: Checkpoints | None,
    name: str,
    watch: Watcher | None,
) -> None:
    """`train`, called by every process of a launched group with the same arguments; all end with the same net."""
    _check(recipe, launched())
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=not engine.cuda, mixed_precision="no")
    own, first = Engine(accelerator.device, engine.bfloat16), accelerator.process_index == 0
    there = Resident.of(data.images, data.targets, data.mean, data.deviation, own)
    train(
        net, there, recipe, key, own, joint=joint, together=Accelerated(accelerator),
        saver=saver_for(checkpoints, name) if first else None, watch=watch if first else None,
    )  # fmt: skip
    without_global_norm(net)
    accelerator.wait_for_everyone()


def train_together(
    net: TargetNet,
    data: Resident,
    recipe: ImageRecipe,
    key: Key,
    engine: Engine,
    *,
    joint: bool,
    checkpoints: Checkpoints | None,
    name: str,
    watch: Watcher | None,
) -> None:
    """`train` by `recipe.processes` processes of this machine, one GPU each if there are any."""
    _check(recipe, recipe.processes)
    if engine.cuda and torch.cuda.device_count() < recipe.processes:
        raise ConfigError(
            f"processes is {recipe.processes}, but there are {torch.cuda.device_count()} GPUs: one for each is needed."
        )
    net.share_memory()
    data = Resident(*(tensor.share_memory_() for tensor in (data.images, data.targets, data.mean, data.deviation)))
    done = torch.zeros(1, dtype=torch.int64).share_memory_()
    task = _Task(net, data, recipe, key, engine, joint, checkpoints, name, done, _free_port())
    context = cast(Any, start_processes(
        _work, (task,), nprocs=recipe.processes, join=False, start_method="spawn",
    ))  # fmt: skip
    while not context.join(timeout=POLL_SECONDS):
        if watch is not None and int(done):
            watch(int(done), recipe.n_steps)


@dataclass(frozen=True)
class _Task:
    """What the processes are given; tensors lie in shared memory, the trained net among them."""

    net: TargetNet
    data: Resident
    recipe: ImageRecipe
    key: Key
    engine: Engine
    joint: bool
    checkpoints: Checkpoints | None
    name: str
    done: Tensor
    port: int


@dataclass(frozen=True)
class _Tally:
    """Tells the parent how far it is."""

    done: Tensor

    def __call__(self, done: int, total: int) -> None:
        self.done.fill_(done)


def _work(rank: int, task: _Task) -> None:
    threading.Thread(target=die_with_parent, daemon=True).start()
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(task.recipe.processes),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(task.port),
    }  # fmt: skip
    torch.set_num_threads(1)
    net = TargetNet(
        task.net.backbone.name, task.data.images.shape[-1], task.data.targets.shape[1], Key(0),
        branch=task.net.branch is not None,
    )  # fmt: skip
    net.load_state_dict(task.net.state_dict())
    train_in_group(
        net, task.data, task.recipe, task.key, task.engine, joint=task.joint, checkpoints=task.checkpoints,
        name=task.name, watch=_Tally(task.done),
    )  # fmt: skip
    if rank == 0:
        task.net.load_state_dict(net.state_dict())
    distributed.barrier()
    distributed.destroy_process_group()


def _check(recipe: ImageRecipe, n: int) -> None:
    try:
        importlib.import_module("accelerate")
    except ImportError as error:
        raise ConfigError('several processes need the extra: pip install "mqnet[accelerate]".') from error
    if recipe.batch_size % (2 * n):  # pairs of the loss prediction stay together
        raise ConfigError(
            f"batch_size {recipe.batch_size} cannot be dealt out to {n} processes: give a multiple of {2 * n}."
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
