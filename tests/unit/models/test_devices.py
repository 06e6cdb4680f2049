"""Choice of device and precision, and what a GPU is given, as far as a machine without one can tell."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.models.devices import Engine, Machine
from mqnet.models.images import ResNet8

NONE = Machine(cuda=False, cuda_bfloat16=False, cpu_bfloat16=False)
FAST = Machine(cuda=False, cuda_bfloat16=False, cpu_bfloat16=True)
GPU = Machine(cuda=True, cuda_bfloat16=True, cpu_bfloat16=False)
OLD_GPU = Machine(cuda=True, cuda_bfloat16=False, cpu_bfloat16=True)


@pytest.mark.parametrize(
    ("machine", "device", "precision", "label"),
    [
        (NONE, "auto", "auto", "cpu float32"),
        (FAST, "auto", "auto", "cpu bfloat16"),
        (NONE, "cpu", "bfloat16", "cpu bfloat16"),
        (FAST, "cpu", "float32", "cpu float32"),
        (GPU, "auto", "auto", "cuda bfloat16"),
        (GPU, "cpu", "auto", "cpu float32"),
        (OLD_GPU, "cuda", "auto", "cuda float32"),
        (OLD_GPU, "auto", "bfloat16", "cuda bfloat16"),
    ],
)
def test_auto_takes_the_fastest_that_is_there(machine: Machine, device: str, precision: str, label: str) -> None:
    assert Engine.choose(device, precision, machine).label == label  # pyright: ignore[reportArgumentType]


def test_a_gpu_that_is_not_there_is_refused_before_anything_is_trained() -> None:
    with pytest.raises(ConfigError, match="no GPU"):
        Engine.choose("cuda", "auto", FAST)


def test_the_choice_does_not_change_between_two_looks() -> None:
    assert Machine.here() == Machine.here()


def test_towards_a_gpu_memory_is_pinned_and_nobody_waits() -> None:
    pinned: list[Tensor] = []

    def pin(tensor: Tensor) -> Tensor:
        pinned.append(tensor)
        return tensor

    x, asked = torch.ones(3), list[dict[str, object]]()

    def to(tensor: Tensor, device: torch.device, **how: object) -> Tensor:
        asked.append({"device": device.type, **how})
        return tensor

    with patch.object(Tensor, "to", to):
        assert Engine(torch.device("cuda"), True).put(x, pin=pin) is x
        assert Engine(torch.device("cpu"), True).put(x, pin=pin) is x
    assert pinned == [x]
    assert asked == [{"device": "cuda", "non_blocking": True}]


def test_a_gpu_is_waited_for_a_block_at_a_time() -> None:
    """The event of one block is waited for at the start of the next but one; a processor has none."""
    said: list[str] = []

    class Event:
        def record(self) -> None:
            said.append("record")

        def synchronize(self) -> None:
            said.append("wait")

    with patch.object(torch.cuda, "Event", Event):
        wait = Engine(torch.device("cuda"), True).mark()
        assert said == ["record"]
        wait()
        assert said == ["record", "wait"]
        Engine(torch.device("cpu"), True).mark()()
        assert said == ["record", "wait"]


def test_repeatable_convolutions_are_asked_for_and_given_back() -> None:
    cudnn = torch.backends.cudnn
    before = (cudnn.deterministic, cudnn.benchmark)
    with Engine(torch.device("cuda"), True).repeatable():
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
    assert (cudnn.deterministic, cudnn.benchmark) == before


def test_options_name_the_device() -> None:
    with pytest.raises(ConfigError, match="no GPU"), patch.object(torch.cuda, "is_available", lambda: False):
        Engine.choose(ResNet8(device="cuda").device, "auto")
