"""How fast images are trained on, looked at and changed, beside what plain PyTorch does in the same minutes.

    python benchmarks/images.py [--repeats 5] [--quick] [--json]

Every figure is the fastest of its repeats, and the repeats of all rows take turns: what else goes on on the machine
meets all of them. The plain loop is float32, NCHW, its images decoded, mirrored and cropped one by one in a DataLoader.
The ceiling is the largest product of the same run: how far a row is from what the processor can multiply.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from mqnet.models.augment import FlipCrop, augmented
from mqnet.models.devices import Engine, Machine
from mqnet.models.fitted_images import FittedImages
from mqnet.models.images import ImageModel
from mqnet.models.resnet import NetName, ResNet
from mqnet.models.target_net import TargetNet
from mqnet.models.training import Resident, train
from mqnet.registry import MODEL
from mqnet.rng import Key

BATCH, N_IMAGES, N_CLASSES = 64, 1024, 10
MULTIPLICATIONS: dict[NetName, float] = {"resnet18": 0.5554e9, "resnet8": 12.4e6}
"""Of one image of 32 pixels, forward; a step takes three times as many."""


@dataclass
class Row:
    """Images a second, and what share of the ceiling that is."""

    what: str
    images_per_second: float = 0.0
    gflops: float = 0.0

    def seen(self, n: int, seconds: float, flops: float = 0.0) -> None:
        if n / seconds > self.images_per_second:
            self.images_per_second, self.gflops = n / seconds, n * flops / seconds / 1e9


class Pictures(Dataset[tuple[Tensor, int]]):
    """What people write: one image at a time."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels, self.generator = images, labels, np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index].astype(np.float32) / 255.0
        if self.generator.random() < 0.5:
            image = image[:, :, ::-1]
        x, y = self.generator.integers(0, 9, size=2)
        padded = np.pad(image, ((0, 0), (4, 4), (4, 4)))[:, y : y + 32, x : x + 32]
        return torch.from_numpy((np.ascontiguousarray(padded) - 0.5) / 0.25), int(self.labels[index])


def endless(loader: DataLoader[tuple[Tensor, int]]) -> Iterator[list[Tensor]]:
    while True:
        yield from loader


def plain_steps(name: NetName, data: Dataset[tuple[Tensor, int]], n_steps: int) -> Callable[[], None]:
    """A training as a tutorial has it."""
    net = nn.Sequential(ResNet(name, 32, Key(0).torch()), nn.Linear(512 if name == "resnet18" else 64, N_CLASSES))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)

    def run() -> None:
        net.train()
        batches = endless(DataLoader(data, BATCH, shuffle=True))
        for _ in range(n_steps):
            images, labels = next(batches)
            loss = functional.cross_entropy(net(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return run


def plain_inference(name: NetName, data: Dataset[tuple[Tensor, int]], n_batches: int) -> Callable[[], None]:
    net = nn.Sequential(
        ResNet(name, 32, Key(0).torch()), nn.Linear(512 if name == "resnet18" else 64, N_CLASSES)
    ).eval()

    def run() -> None:
        batches = endless(DataLoader(data, BATCH))
        with torch.no_grad():
            for _ in range(n_batches):
                net(next(batches)[0])

    return run


def our_steps(name: NetName, images: Tensor, labels: Tensor, n_steps: int, engine: Engine) -> Callable[[], None]:
    """The training of a round, its loss branch detached as it is by default."""
    recipe: ImageModel = replace(MODEL.make(name), n_steps=n_steps, device=engine.device.type)
    targets = functional.one_hot(labels, N_CLASSES).float()
    data = Resident.of(images, targets, torch.full((3,), 0.5), torch.full((3,), 0.25), engine)
    net = TargetNet(name, 32, N_CLASSES, Key(0))

    def run() -> None:
        train(net, data, recipe, Key(1), engine)
        engine.mark()()

    return run


def our_inference(name: NetName, images: Tensor, engine: Engine) -> Callable[[], None]:
    """The pass over the pool."""
    recipe: ImageModel = replace(MODEL.make(name), n_steps=1, device=engine.device.type)
    net = TargetNet(name, 32, N_CLASSES, Key(0))
    state = {key: tensor.detach().contiguous() for key, tensor in net.state_dict().items()} | {
        "mean": torch.full((3,), 0.5), "deviation": torch.full((3,), 0.25), "size": torch.tensor(32),
        "mc_seed": torch.tensor(0), "react_bound": torch.tensor(1.0), "constant": torch.tensor(False),
    }  # fmt: skip
    fitted: FittedImages = recipe.restore(state)
    columns = frozenset({"logits", "features"})

    def run() -> None:
        fitted.encode(images, columns)

    return run


def ceiling(dtype: torch.dtype, device: torch.device) -> float:
    """Billions of operations a second in one large product."""
    side = 1024 if device.type == "cpu" else 8192
    a = torch.randn(side, side, device=device).to(dtype)
    wait = Engine(device, dtype == torch.bfloat16)
    a @ a
    wait.mark()()
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        a @ a
        wait.mark()()
        best = min(best, time.perf_counter() - began)
    return 2 * side**3 / best / 1e9


def measure(engine: Engine, repeats: int, n_steps: dict[NetName, int], *, plain: bool) -> tuple[list[Row], list[float]]:
    """All rows of a device, their repeats taking turns."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (N_IMAGES, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(N_CLASSES, (N_IMAGES,), generator=generator)
    data, dtype = Pictures(images.numpy(), labels.numpy()), torch.bfloat16 if engine.bfloat16 else torch.float32
    work: list[tuple[Row, Callable[[], None], int, float]] = []
    names: tuple[NetName, ...] = ("resnet18", "resnet8")
    for name in names:
        n, flops = n_steps[name], 2 * MULTIPLICATIONS[name]
        n_seen = min(N_IMAGES, n * BATCH)
        if plain:
            work.append((Row(f"{name} training, plain"), plain_steps(name, data, n), n * BATCH, 3 * flops))
        work.append((Row(f"{name} training"), our_steps(name, images, labels, n, engine), n * BATCH, 3 * flops))
        if plain:
            work.append((Row(f"{name} pool, plain"), plain_inference(name, data, n_seen // BATCH), n_seen, flops))
        work.append((Row(f"{name} pool"), our_inference(name, images[:n_seen], engine), n_seen, flops))
    resident, change, draws = engine.put(images[:256]), FlipCrop(), torch.Generator().manual_seed(0)

    def flip_and_crop() -> None:
        for _ in range(20):
            augmented(change, resident, draws)
        engine.mark()()

    work.append((Row("mirror and crop"), flip_and_crop, 20 * 256, 0.0))
    for _, run, _, _ in work:
        run()
    ceilings: list[float] = []
    for _ in range(repeats):
        ceilings.append(ceiling(dtype, engine.device))
        for row, run, n, flops in work:
            began = time.perf_counter()
            run()
            row.seen(n, time.perf_counter() - began, flops)
    return [row for row, *_ in work], ceilings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few steps a repeat: half a minute on a quiet core")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    machine, found = Machine.here(), {}
    for device in ("cpu", *(("cuda",) if machine.cuda else ())):
        engine = Engine.choose(device, "auto")
        steps: dict[NetName, int] = {"resnet18": 96, "resnet8": 96}
        if device == "cpu":
            steps = {"resnet18": 1, "resnet8": 12} if args.quick else {"resnet18": 3, "resnet8": 24}
        rows, ceilings = measure(engine, args.repeats, steps, plain=device == "cpu")
        found[engine.label] = {"ceiling_gflops": max(ceilings), "rows": [asdict(row) for row in rows]}
        if args.json:
            continue
        print(f"{engine.label}: the largest product makes {max(ceilings):,.0f} GFLOP/s")
        speed = {row.what: row.images_per_second for row in rows}
        for row in rows:
            share = f"{row.gflops / max(ceilings):6.0%} of it" if row.gflops else " " * 12
            beside = speed.get(f"{row.what}, plain")
            ratio = f"   {row.images_per_second / beside:.2f} times the plain loop" if beside else ""
            print(f"  {row.what:26} {row.images_per_second:12,.0f} images/s {share}{ratio}")
    if args.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
