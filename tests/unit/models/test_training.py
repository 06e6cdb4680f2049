"""The training loop: its schedule, its draws, and that an interrupted training ends as an undisturbed one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from mqnet.errors import PoolError
from mqnet.models.augment import Augmentation, ColourJitter, FlipCrop, Greyscale, ResizedCrop, Rotation
from mqnet.models.base import TrainingSet
from mqnet.models.checkpoints import Saver
from mqnet.models.devices import Engine
from mqnet.models.fitted_images import FittedImages
from mqnet.models.images import ImageModel, ResNet8
from mqnet.models.target_net import Said, TargetNet
from mqnet.models.training import BLOCK, Draws, Resident, Share, name_of, train
from mqnet.rng import Key
from mqnet.types import Arrays
from pictures import pictures

N = 40
RECIPE = ResNet8(n_steps=BLOCK + 13, batch_size=8, device="cpu", dropout=0.2)
JOINT = frozenset({"predicted_loss"})


def training_set(seed: int = 1) -> TrainingSet:
    labels = torch.arange(30) % 3
    images = pictures(labels.numpy(), size=8, seed=seed)
    return TrainingSet(images, labels, torch.empty(0, 3, 8, 8, dtype=torch.uint8), 3)


@dataclass
class Kept:
    """Checkpoints in memory; counts."""

    states: dict[str, Arrays] = field(default_factory=dict)
    n_saved: int = 0

    def load(self, name: str) -> Arrays | None:
        return self.states.get(name)

    def save(self, name: str, state: Arrays) -> None:
        self.states = {name: {key: tensor.clone() for key, tensor in state.items()}}
        self.n_saved += 1


class Killed(BaseException):
    pass


def fit(recipe: ImageModel = RECIPE, kept: Kept | None = None, die_at: int = -1, key: int = 0) -> FittedImages:
    def watch(done: int, total: int) -> None:
        assert total == recipe.n_steps
        if done == die_at:
            raise Killed

    # a checkpoint at every step
    with patch.object(Saver, "due", lambda saver: True):
        return recipe.fit_resumable(training_set(), JOINT, Key(key), checkpoints=kept, watch=watch)


def test_learning_rate_falls_at_a_half_and_at_three_quarters() -> None:
    recipe = ResNet8(n_steps=100, lr=0.5)
    rates = [recipe.lr_at(step) for step in (0, 49, 50, 74, 75, 99)]
    assert rates == pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005, 0.005])


@pytest.mark.parametrize("n_items", [1, 7, 64, 1000])
def test_every_epoch_sees_every_item_once(n_items: int) -> None:
    draws = Draws(Key(5), n_items, 8, 3)
    rows = torch.cat([draws.block(number)[0].flatten() for number in range(5)])
    whole = rows[: len(rows) // n_items * n_items].view(-1, n_items)
    assert (whole.sort(1).values == torch.arange(n_items)).all()
    if n_items > 7:
        assert not torch.equal(whole[0], whole[1]) if len(whole) > 1 else True
    for number in (3, 0):  # a block is a function of its number
        assert torch.equal(draws.block(number)[0].flatten(), rows[number * BLOCK * 8 : (number + 1) * BLOCK * 8])
        assert torch.equal(draws.block(number)[1], draws.block(number)[1])
    assert not torch.equal(draws.block(0)[1], draws.block(1)[1])


def test_shares_deal_out_a_batch_and_keep_pairs_together() -> None:
    rows = [Share(rank, 2).rows(12) for rank in range(2)]
    assert sorted(torch.cat(rows).tolist()) == list(range(12))
    for mine in rows:
        assert torch.equal(mine[3:], mine[:3] + 6)  # row i and row i + n/2 are partners
    assert Share().rows(4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("die_at", [1, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 12])
def test_interrupted_and_continued_is_bit_for_bit_the_same(die_at: int) -> None:
    whole, kept = fit(), Kept()
    with pytest.raises(Killed):
        fit(kept=kept, die_at=die_at)
    # the step in which it died was done, but not kept
    assert [int(state["step"]) for state in kept.states.values()] == ([die_at - 1] if die_at > 1 else [])
    steps: list[int] = []
    again = RECIPE.fit_resumable(
        training_set(), JOINT, Key(0), checkpoints=kept, watch=lambda done, total: steps.append(done)
    )
    assert steps[0] == die_at
    for name, tensor in whole.state().items():
        assert torch.equal(tensor, again.state()[name]), name


def test_a_finished_training_is_not_repeated() -> None:
    kept, steps = Kept(), list[int]()
    whole = fit(kept=kept)
    again = RECIPE.fit_resumable(
        training_set(), JOINT, Key(0), checkpoints=kept, watch=lambda done, total: steps.append(done)
    )
    assert steps == []
    assert torch.equal(whole.state()["classifier.weight"], again.state()["classifier.weight"])


def test_a_checkpoint_of_another_training_is_never_used() -> None:
    names: set[str] = set()
    changes: list[tuple[ImageModel, TrainingSet, frozenset[str], int]] = [
        (RECIPE, training_set(), JOINT, 0),
        (RECIPE, training_set(), frozenset(), 0),
        (RECIPE, training_set(), JOINT, 1),
        (RECIPE, training_set(seed=2), JOINT, 0),
        (replace(RECIPE, lr=0.2), training_set(), JOINT, 0),
        (replace(RECIPE, precision="float32"), training_set(), JOINT, 0),
        (replace(RECIPE, precision="bfloat16"), training_set(), JOINT, 0),
    ]
    for recipe, data, columns, key in changes:
        kept = Kept()
        replace(recipe, n_steps=1).fit_resumable(data, columns, Key(key), checkpoints=kept, watch=None)
        names |= set(kept.states)
    # auto is one of the two precisions
    assert len(names) == len(changes) - 1
    assert name_of(torch.zeros(2)) != name_of(torch.zeros(2, 1))
    assert name_of("a", "b") != name_of("ab")


def test_a_slow_disk_is_written_to_less_often() -> None:
    now = [0.0]

    class Slow(Kept):
        def save(self, name: str, state: Arrays) -> None:
            now[0] += 3.0

    saver = Saver(Slow(), "x", clock=lambda: now[0])
    assert not saver.due()
    now[0] = 30.0
    assert saver.due()
    saver.save({})
    now[0] += 149.0
    assert not saver.due()  # three seconds are two percent of 150
    now[0] += 1.0
    assert saver.due()


def test_the_branch_is_cut_off_after_six_tenths() -> None:
    seen: list[bool] = []
    forward = TargetNet.forward

    def spying(net: TargetNet, images: Tensor, mask: Tensor | None = None, joint: bool = False) -> Said:
        seen.append(joint)
        return forward(net, images, mask, joint)

    with patch.object(TargetNet, "forward", spying):
        replace(RECIPE, n_steps=10).fit(training_set(), JOINT, Key(0))
        assert seen == [True] * 6 + [False] * 4
        seen.clear()
        replace(RECIPE, n_steps=10).fit(training_set(), frozenset(), Key(0))
        assert not any(seen)


@dataclass(frozen=True)
class PretendGpu(Engine):
    """A processor that is treated as a GPU, and remembers when it was waited for."""

    said: list[str] = field(default_factory=list)

    @property
    def cuda(self) -> bool:
        return True

    def mark(self) -> Callable[[], None]:
        number = sum(word.startswith("mark") for word in self.said)
        self.said.append(f"mark {number}")
        return lambda: self.said.append(f"wait {number}")


WAITS = {
    "_local_scalar_dense",
    "nonzero",
    "is_nonzero",
    "equal",
    "lift_fresh",
    "linalg_inv_ex",
    "masked_select",
    "item",
}
"""What makes a processor wait for a GPU: a number is wanted, a shape depends on one, or a constant is sent."""


class Calls(TorchDispatchMode):
    """Every operation that reaches the device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def _train_on(engine: Engine, recipe: ImageModel, seen: AbstractContextManager[Any] | None = None, **how: Any) -> None:
    data = training_set()
    targets = torch.nn.functional.one_hot(data.labels, 3).float()
    net = TargetNet("resnet8", 8, 3, Key(2))
    resident = Resident(data.inputs, targets, torch.full((3,), 0.5), torch.full((3,), 0.25))
    with seen or nullcontext():
        train(net, resident, recipe, Key(4), engine, joint=True, **how)


def test_no_step_makes_the_processor_wait_for_the_device() -> None:
    calls, engine = Calls(), PretendGpu(torch.device("cpu"), bfloat16=True)
    with patch("mqnet.models.training._check_finite"):  # it comes once, after the last step
        _train_on(engine, replace(RECIPE, n_steps=3), calls)
    assert {"convolution_backward", "_fused_sgd_"} <= calls.names  # it saw the work
    assert not calls.names & WAITS


@pytest.mark.parametrize("change", [ColourJitter(), ResizedCrop(), Greyscale(), Rotation(), FlipCrop()])
def test_no_augmentation_makes_the_processor_wait(change: Augmentation) -> None:
    images, draws = torch.rand(4, 3, 8, 8), torch.rand(4, change.n_draws)
    change(images, draws)  # constants are sent once
    with Calls() as calls:
        change(images, draws)
    assert calls.names
    assert not calls.names & WAITS


def test_on_a_gpu_progress_is_told_and_kept_a_block_at_a_time() -> None:
    engine, kept, told = PretendGpu(torch.device("cpu"), bfloat16=False), Kept(), list[int]()
    with patch.object(Saver, "due", lambda saver: True):
        _train_on(
            engine, replace(RECIPE, n_steps=2 * BLOCK + 5), saver=Saver(kept, "x"),
            watch=lambda done, total: told.append(done),
        )  # fmt: skip
    assert told == [BLOCK, 2 * BLOCK, 2 * BLOCK + 5]
    assert kept.n_saved == 3
    # before block k + 1 is sent, all that came before block k is done
    assert engine.said == ["mark 0", "wait 0", "mark 1", "wait 1", "mark 2", "wait 2", "mark 3"]


def test_one_step_is_sgd_by_hand() -> None:
    data, recipe = training_set(), replace(RECIPE, n_steps=2, augment="off", dropout=0.0, lr=0.3)
    targets = torch.nn.functional.one_hot(data.labels, 3).float()
    mean, deviation = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.3, 0.25])
    engine = Engine(torch.device("cpu"), bfloat16=False)
    fast, slow = (TargetNet("resnet8", 8, 3, Key(2), branch=False) for _ in range(2))
    train(fast, Resident(data.inputs, targets, mean, deviation), recipe, Key(4), engine)
    rows, _ = Draws(Key(4), 30, 8, 0).block(0)
    momenta = [torch.zeros_like(parameter) for parameter in slow.parameters()]
    for step, lr in enumerate((0.3, 0.03)):
        images = (data.inputs[rows[step]].float() / 255.0 - mean.view(1, 3, 1, 1)) / deviation.view(1, 3, 1, 1)
        logits = slow(images).logits
        loss = -(targets[rows[step]] * torch.log_softmax(logits, 1)).sum(1).mean()
        gradients = torch.autograd.grad(loss, list(slow.parameters()))
        with torch.no_grad():
            for parameter, gradient, momentum in zip(slow.parameters(), gradients, momenta, strict=True):
                momentum.mul_(0.9).add_(gradient + 5e-4 * parameter)
                parameter.sub_(lr * momentum)
    for (name, found), expected in zip(fast.named_parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4, msg=name)


def test_a_training_that_diverges_says_so() -> None:
    with pytest.raises(PoolError, match=r"diverged.*Lower lr"):
        replace(RECIPE, lr=1e20, n_steps=6, precision="float32").fit(training_set(), frozenset(), Key(0))
