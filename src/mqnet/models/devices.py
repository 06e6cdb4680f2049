"""Where a model of images is worked: which device, which precision, how data gets there."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mqnet.errors import ConfigError

DeviceName = Literal["auto", "cpu", "cuda"]
ImagePrecision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class Machine:
    """What there is to work with; read once, so that a choice never hangs on a measurement."""

    cuda: bool
    cuda_bfloat16: bool
    cpu_bfloat16: bool
    """The processor multiplies bfloat16 by itself: without that it is emulated, and slower than float32."""

    @staticmethod
    def here() -> Machine:
        """This machine."""
        cuda = torch.cuda.is_available()
        return Machine(cuda, cuda and torch.cuda.is_bf16_supported(), _cpu_bfloat16())


def _cpu_bfloat16() -> bool:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        supported = getattr(torch.cpu, name, None)  # there from torch 2.6 on; an older one works in float32
        if supported is not None and supported():
            return True
    return False


@dataclass(frozen=True)
class Engine:
    """A device and a precision."""

    device: torch.device
    bfloat16: bool

    @staticmethod
    def choose(device: DeviceName, precision: ImagePrecision, machine: Machine | None = None) -> Engine:
        """The engine asked for; a device that is not there is refused, `auto` takes the fastest that is."""
        machine = machine or Machine.here()
        if device == "cuda" and not machine.cuda:
            raise ConfigError("device is 'cuda', but torch sees no GPU here. Say device = 'auto' or 'cpu'.")
        kind = "cuda" if device == "cuda" or (device == "auto" and machine.cuda) else "cpu"
        native = machine.cuda_bfloat16 if kind == "cuda" else machine.cpu_bfloat16
        return Engine(torch.device(kind), native if precision == "auto" else precision == "bfloat16")

    @property
    def cuda(self) -> bool:
        """Whether it is a GPU."""
        return self.device.type == "cuda"

    @property
    def label(self) -> str:
        """What distinguishes its results, to within the library's version."""
        return f"{self.device.type} {'bfloat16' if self.bfloat16 else 'float32'}"

    def put(self, tensor: Tensor, *, pin: Callable[[Tensor], Tensor] = Tensor.pin_memory) -> Tensor:
        """The tensor on the device; towards a GPU by pinned memory and without waiting for it."""
        if self.device.type == "cpu":
            return tensor
        return pin(tensor).to(self.device, non_blocking=True)

    def autocast(self) -> torch.autocast:
        """The context of a forward pass."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16)

    def mark(self) -> Callable[[], None]:
        """A function that waits until what was asked of the device so far is done."""
        if not self.cuda:
            return lambda: None
        event = torch.cuda.Event()
        event.record()
        return event.synchronize

    @contextmanager
    def repeatable(self) -> Generator[None]:
        """Inside, a GPU's convolutions give the same numbers every time; a processor's always do."""
        cudnn = torch.backends.cudnn
        before = cudnn.deterministic, cudnn.benchmark
        cudnn.deterministic, cudnn.benchmark = True, False
        try:
            yield
        finally:
            cudnn.deterministic, cudnn.benchmark = before
