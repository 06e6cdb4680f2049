"""Two processes train as one does: the same batches, the same statistics, the same steps, to within rounding."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from safetensors.torch import load_file

from mqnet.errors import ConfigError
from mqnet.loop.checkpoints import FolderCheckpoints
from mqnet.models import parallel
from mqnet.models.base import TrainingSet
from mqnet.models.devices import Engine
from mqnet.models.images import ResNet8
from mqnet.models.parallel import GlobalNorm, with_global_norm, without_global_norm
from mqnet.models.target_net import TargetNet
from mqnet.models.training import Resident
from mqnet.rng import Key
from pictures import pictures

RECIPE = ResNet8(n_steps=3, batch_size=16, lr=0.05, dropout=0.2, device="cpu", precision="float32")
JOINT = frozenset({"predicted_loss"})


def training_set() -> TrainingSet:
    labels = torch.arange(30) % 3
    images = pictures(labels.numpy(), size=8, seed=1)
    return TrainingSet(images, labels, torch.empty(0, 3, 8, 8, dtype=torch.uint8), 3)


@pytest.mark.slow
def test_two_processes_end_with_the_model_of_one(tmp_path) -> None:
    """Over gloo; a few steps, since training magnifies a difference in the last digit by and by."""
    alone = RECIPE.fit(training_set(), JOINT, Key(2))
    kept = FolderCheckpoints(tmp_path / "training")
    two = replace(RECIPE, processes=2)
    together = two.fit_resumable(training_set(), JOINT, Key(2), checkpoints=kept, watch=None)
    start = replace(RECIPE, n_steps=1, lr=1e-12).fit(training_set(), JOINT, Key(2))
    for name, tensor in alone.state().items():
        moved = (tensor - start.state()[name]).abs().max() if tensor.is_floating_point() else 0.0
        torch.testing.assert_close(together.state()[name], tensor, rtol=1e-3, atol=2e-4, msg=name)
        if name.endswith("conv1.weight"):
            assert moved > 1e-3, name  # far more than the difference allowed
    # the first process alone keeps how far they are, and where all processes go on from
    (path,) = kept.folder.iterdir()
    state = kept.load(path.stem)
    assert state is not None
    assert int(state["step"]) == 3
    assert torch.equal(state["net.classifier.weight"], together.state()["classifier.weight"])


def test_global_norm_of_one_process_is_batch_norm(tmp_path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(6, 4, 5, 5, generator=generator) * 3.0 + 100.0  # a mean that would drown sums of squares
        ours, theirs = GlobalNorm(4), torch.nn.BatchNorm2d(4)
        gradients = []
        for norm in (ours, theirs):
            with torch.no_grad():
                norm.weight.copy_(torch.tensor([1.0, 2.0, 0.5, -1.0]))
            inputs = x.clone().requires_grad_()
            out = norm(inputs)
            (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
            gradients.append((out.detach(), inputs.grad, norm.weight.grad, norm.bias.grad))
        for mine, reference in zip(*gradients, strict=True):
            torch.testing.assert_close(mine, reference, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(ours.running_mean, theirs.running_mean)
        torch.testing.assert_close(ours.running_var, theirs.running_var, rtol=1e-4, atol=1e-4)
        assert int(ours.num_batches_tracked) == 1
        torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=1e-3, atol=1e-3)
    finally:
        torch.distributed.destroy_process_group()


def test_a_net_gets_global_norms_and_loses_them_again() -> None:
    net = TargetNet("resnet8", 8, 3, Key(0))
    names = [name for name, module in net.named_modules() if isinstance(module, torch.nn.BatchNorm2d)]
    with_global_norm(net)
    assert [name for name, module in net.named_modules() if type(module) is GlobalNorm] == names
    without_global_norm(net)
    assert not [module for module in net.modules() if type(module) is GlobalNorm]


def test_more_processes_than_gpus_and_a_missing_extra_are_refused() -> None:
    data = (torch.zeros(1),) * 4
    net, gpu = TargetNet("resnet8", 8, 3, Key(0)), Engine(torch.device("cuda"), True)
    with patch.object(torch.cuda, "device_count", lambda: 1), pytest.raises(ConfigError, match="there are 1 GPUs"):
        parallel.train_together(
            net, Resident(*data), replace(RECIPE, processes=2), Key(0), gpu, joint=False, checkpoints=None, name="",
            watch=None,
        )  # fmt: skip
    with pytest.raises(ConfigError, match="a multiple of 6"):
        replace(RECIPE, processes=3).fit(training_set(), JOINT, Key(0))
    with (
        patch.object(parallel.importlib, "import_module", side_effect=ImportError),
        pytest.raises(ConfigError, match=r"mqnet\[accelerate\]"),
    ):
        replace(RECIPE, processes=2).fit(training_set(), JOINT, Key(0))
    assert parallel.launched() == 1


@pytest.mark.slow
def test_a_launched_group_ends_with_the_model_of_one(tmp_path) -> None:
    """What a launcher starts on several machines, here two processes of this one."""
    script = Path(__file__).with_name("launched_fit.py")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port",
        str(parallel._free_port()), str(script), str(tmp_path),
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    alone = RECIPE.fit(training_set(), JOINT, Key(2)).state()
    states = [load_file(tmp_path / f"{rank}.safetensors") for rank in range(2)]
    for name, tensor in alone.items():
        assert torch.equal(states[0][name], states[1][name]), name
        torch.testing.assert_close(states[0][name], tensor, rtol=1e-3, atol=2e-4, msg=name)
