"""Where the time of a campaign goes, and what a pool of a million items costs.

`OMP_NUM_THREADS=1 python benchmarks/rounds.py [--quick]`. The first table needs the shared data (MQNET_SHARED_DATA, or
../shared/data beside the checkout) and runs every strategy of the grid once; the second generates its pool in a
temporary folder. Memory is what the process holds at its peak beyond what it held before and beyond the columns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

N_ITEMS, N_QUICK, DIM, N_CLASSES = 1_000_000, 100_000, 256, 10
DATA = Path(os.environ.get("MQNET_SHARED_DATA") or Path(__file__).parents[2] / "shared" / "data") / "embeddings"


def table(title: str, rows: Sequence[tuple[str, str]]) -> None:
    print(f"\n{title}")
    for name, value in rows:
        print(f"  {name:<44} {value:>14}", flush=True)


@dataclass
class Memory:
    """MiB of private memory: pages of a mapped file belong to the file, the system takes them back at will."""

    before: float = 0.0
    peak: float = 0.0

    @staticmethod
    def now() -> float:
        fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
        return int(fields["RssAnon"].split()[0]) / 1024

    @contextmanager
    def measured(self) -> Generator[Memory]:
        self.before = self.peak = self.now()
        done = threading.Event()

        def look() -> None:
            while not done.wait(0.002):
                self.peak = max(self.peak, self.now())

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield self
        finally:
            done.set()
            watcher.join()
            self.peak = max(self.peak, self.now())

    @property
    def added(self) -> float:
        return self.peak - self.before


# -- a campaign --------------------------------------------------------------------------------------------------------


def campaigns(quick: bool) -> None:
    import torch

    from mqnet.experiment.cells import grid, open_dataset, open_scenario
    from mqnet.experiment.config import parse_config
    from mqnet.experiment.run import run_cell

    torch.set_num_threads(1)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mqnet.experiment.run"], check=True)
    imports = time.perf_counter() - began
    files = {key: str(DATA / f"cifar10_{key}.npy") for key in ("train", "train_labels", "test", "test_labels")}
    config = parse_config(
        {
            "scenario": {"dataset": "embeddings", **files, "known_classes": 4, "ood_share": 0.4, "pool_size": 20000},
            "campaign": {"rounds": 3 if quick else 10, "budget": 100},
            "grid": {"strategies": ["random", "confidence", "sum", "oracle-purity"], "seeds": [0]},
        }
    )
    began = time.perf_counter()
    open_dataset(config.scenario)
    opened = time.perf_counter() - began
    began = time.perf_counter()
    open_scenario(config.scenario, 0.4, 0).pool.fingerprint()
    scenario = time.perf_counter() - began
    table(
        "once per process (CIFAR-10 embeddings, 60,000 x 256 float16)",
        [
            ("import", f"{imports:.2f} s"),
            ("open and check the data set", f"{opened:.3f} s"),
            ("draw the pool and hash it", f"{scenario:.3f} s"),
        ],
    )
    phases = ("fit", "encode", "select", "learn")
    for cell in grid(config):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            run_cell(Path(folder), cell)
            whole = time.perf_counter() - began
            measured = _phases(Path(folder), cell.digest)
        rest = whole - sum(measured.values())
        rows = [(phase, f"{measured[phase]:.3f} s") for phase in phases]
        title = f"{cell.strategy_label}: {config.campaign.rounds} rounds, {whole:.2f} s"
        table(title, [*rows, ("store, test accuracy and all else", f"{rest:.3f} s")])


def _phases(out: Path, digest: str) -> dict[str, float]:
    import json

    rounds = json.loads((out / "cells" / digest / "rounds.json").read_text())
    return {phase: sum(r[f"seconds_{phase}"] for r in rounds) for phase in ("fit", "encode", "select", "learn")}


# -- a pool of a million -----------------------------------------------------------------------------------------------


def million(n: int) -> None:
    import torch

    from mqnet.data.pools import open_npy
    from mqnet.ids import ItemIds
    from mqnet.models.base import TrainingSet
    from mqnet.models.encode import CHUNK, encode_items
    from mqnet.models.mlp import MlpHead
    from mqnet.registry import STRATEGY
    from mqnet.rng import Key
    from mqnet.view import LabelledView, RoundView

    torch.set_num_threads(1)
    strategy = STRATEGY.make("confidence")  # imported before anything is measured
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.npy"
        _generate(path, n)
        began, memory = time.perf_counter(), Memory()
        with memory.measured():
            pool = open_npy(path)
        rows = [("open", f"{time.perf_counter() - began:.4f} s"), ("  memory", f"{memory.added:.1f} MiB")]
        began = time.perf_counter()
        with memory.measured():
            pool.fingerprint()
        rows += [
            ("check and hash every value, once a process", f"{time.perf_counter() - began:.2f} s"),
            ("  memory", f"{memory.added:.1f} MiB"),
        ]
        key, labels = Key(0), torch.arange(600) % N_CLASSES
        train = TrainingSet(torch.randn(600, DIM, generator=key.torch()), labels, torch.empty(0, DIM), N_CLASSES)
        model = MlpHead().fit(train, frozenset({"logits"}), key)
        for warm in (False, True):
            began, memory = time.perf_counter(), Memory()
            with memory.measured():
                ids = pool.ids.without(list(pool.ids.take(np.arange(0, n, n // 500)))).sorted()
                columns = encode_items(model, pool, ids, frozenset({"logits"}))
            encoded = time.perf_counter() - began
            size = sum(column.nbytes for column in columns.values()) / 2**20
            beyond = memory.added - size
            view = RoundView(ids, columns, LabelledView(ItemIds.of([]), {}, torch.empty(0).long()), N_CLASSES)
            began = time.perf_counter()
            with memory.measured():
                strategy.select(view, 110, key)
            selected = time.perf_counter() - began
            again = "again " if warm else ""
            rows += [
                (f"encode {again}(columns of {size:.0f} MiB)", f"{encoded:.2f} s"),
                (f"  memory beyond the columns ({beyond * 2**20 / (CHUNK * DIM * 2):.1f} chunks)", f"{beyond:.1f} MiB"),
                (f"select {again}by confidence", f"{selected:.2f} s"),
                ("  memory", f"{memory.added:.1f} MiB"),
            ]
            del columns, view
        table(f"a pool of {n:,} x {DIM} float16, a chunk of it is {CHUNK * DIM * 2 / 2**20:.0f} MiB", rows)


def _generate(path: Path, n: int) -> None:
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(n, DIM))
    random = np.random.default_rng(0)
    for start in range(0, n, 50_000):
        part = array[start : start + 50_000]
        part[:] = random.standard_normal(part.shape, dtype=np.float32)
    array.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of a campaign goes.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a smaller pool")
    quick = parser.parse_args().quick
    if DATA.is_dir():
        campaigns(quick)
    else:
        print(f"the shared data folder '{DATA}' is absent: the table of campaigns is left out")
    million(N_QUICK if quick else N_ITEMS)


if __name__ == "__main__":
    main()
