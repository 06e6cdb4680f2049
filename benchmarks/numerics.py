"""Time and memory of every numerical kernel against slow references and independent implementations.

    python benchmarks/numerics.py --quick
    python benchmarks/numerics.py --sizes 10000 50000 200000 1000000 --classes 4 40 --json out.json --plot out.png
    python benchmarks/numerics.py --targets            # the sizes the project promises figures for

Each measurement runs in a child process of its own: inputs are made, the peak of the resident memory is reset, the
call is timed. Implementations of a piece take turns (`--repeat`), each child also measures a plain copy and plain
products. An implementation too slow for all picks runs fewer, and its time is scaled up (marked ~).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]


@dataclass(frozen=True)
class Job:
    """One implementation of one piece at one size."""

    piece: str
    implementation: str
    n: int
    d: int = 256
    n_classes: int = 4
    n_picks: int = 500
    n_labelled: int = 5000

    @property
    def title(self) -> str:
        return f"{self.piece} N={self.n:,} d={self.d} K={self.n_classes}"


@dataclass(frozen=True)
class Contender:
    """How to run an implementation: largest N and most picks it is given (fewer picks are scaled up)."""

    run: Callable[[Job, Any], Any]
    most_items: int = 10**9
    most_picks: int = 10**9


def resident_mb(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of one call, and the MB that the resident memory rose above where it stood."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = resident_mb("VmRSS")
    start = time.perf_counter()
    call()
    return time.perf_counter() - start, resident_mb("VmHWM") - before


def machine_rates() -> dict[str, float]:
    """What this machine does now: bytes/s of a copy, flop/s of products as the kernels use them."""
    import torch

    from mqnet.numerics.products import row_products

    def best(call: Callable[[], Any], work: float) -> float:
        times: list[float] = []
        for _ in range(4):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return work / min(times)

    source = torch.ones(16_000_000)
    target = torch.empty_like(source)
    x, y, out = torch.randn(2048, 256), torch.randn(4096, 256), torch.empty(2048, 4096)
    x64, y64 = x[:1024].double(), y[:1024].double()
    flops = 2.0 * 2048 * 256 * 4096
    return {
        "copy_bytes": best(lambda: target.copy_(source), 2.0 * source.nbytes),
        "mm_float32": best(lambda: torch.mm(x, y.T, out=out), flops),
        "onednn_float32": best(lambda: row_products(x[:512], y), flops / 4),
        "mm_float64": best(lambda: x64 @ y64.T, flops / 8),
    }


def inputs(job: Job) -> Any:
    import torch

    from mqnet.numerics.gradients import Factored, output_gradients

    generator = torch.Generator().manual_seed(0)
    pool = torch.randn(job.n, job.d, generator=generator)
    if job.piece in ("nearest_similarity", "kth_distance"):
        return pool, torch.randn(job.n_labelled, job.d, generator=generator)
    if job.piece == "k_centre":
        return pool, torch.randn(min(100, job.n_labelled), job.d, generator=generator)
    pool.relu_()
    if job.piece == "k_means_plus_plus":
        a = output_gradients(2.0 * torch.randn(job.n, job.n_classes, generator=generator))
        from benchmarks.reference.kmeanspp import embed

        return a, pool, embed(a, pool) if not job.implementation.startswith("mqnet") else None

    def items(n: int) -> Factored:
        logits = 2.0 * torch.randn(n, job.n_classes + 1, generator=generator)
        return Factored(output_gradients(logits), torch.randn(n, job.d, generator=generator).relu_())

    query, private = items(job.n_labelled), items(job.n_labelled)
    return (
        Factored(output_gradients(2.0 * torch.randn(job.n, job.n_classes + 1, generator=generator)), pool),
        query,
        private,
    )


def plain_product(job: Job, data: Any) -> None:
    """The target's yardstick: the same product in chunks by torch's own `mm`, output buffer reused."""
    import torch

    pool, refs = data
    out = torch.empty(2048, len(refs))
    for start in range(0, len(pool), 2048):
        block = pool[start : start + 2048]
        torch.mm(block, refs.T, out=out[: len(block)])


def contenders(piece: str) -> dict[str, Contender]:
    """Implementations of a piece; imports happen inside, so a missing package only removes itself."""
    import torch
    from benchmarks.reference import kcentre as slow_k
    from benchmarks.reference import kmeanspp as slow_m

    from mqnet.numerics import kcentre, kmeanspp, neighbours, submodular_facility, submodular_logdet

    def stream() -> torch.Generator:
        return torch.Generator().manual_seed(1)

    def unlabelled(n: int) -> Any:
        import numpy as np

        return np.concatenate([np.zeros(1), np.full(n - 1, np.nan)])

    def skactiveml_coreset(job: Job, data: Any) -> None:
        from skactiveml.pool import CoreSet

        CoreSet(random_state=0).query(data[0].numpy(), unlabelled(job.n), batch_size=job.n_picks)

    def skactiveml_badge(job: Job, data: Any) -> None:
        import numpy as np
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import Badge
        from sklearn.linear_model import LogisticRegression

        y = unlabelled(job.n)
        y[: 4 * job.n_classes] = np.arange(4 * job.n_classes) % job.n_classes
        model = SklearnClassifier(LogisticRegression(), classes=list(range(job.n_classes)))
        Badge(random_state=0).query(data[1].numpy(), y, model, batch_size=job.n_picks)

    def sklearn_seeding(job: Job, data: Any) -> None:
        from sklearn.cluster import kmeans_plusplus

        kmeans_plusplus(data[2].numpy(), job.n_picks, random_state=0, n_local_trials=1)

    def submodlib(name: str) -> Callable[[Job, Any], None]:
        def run(job: Job, data: Any) -> None:
            import submodlib

            parts = [slow_m.embed(part.a, part.h).numpy() for part in data]
            make = getattr(submodlib, name)
            options: dict[str, Any] = {"lambdaVal": 1e-3} if name.startswith("Log") else {}
            function = make(
                n=job.n, num_queries=len(parts[1]), num_privates=len(parts[2]), data=parts[0], queryData=parts[1],
                privateData=parts[2], metric="cosine", magnificationEta=1, privacyHardness=1, **options,
            )  # fmt: skip
            function.maximize(budget=job.n_picks, optimizer="NaiveGreedy", stopIfZeroGain=False,
                              stopIfNegativeGain=False, show_progress=False)  # fmt: skip

        return run

    tables: dict[str, dict[str, Contender]] = {
        "nearest_similarity": {
            "mqnet": Contender(lambda job, data: neighbours.nearest_similarity(*data)),
            "plain product": Contender(plain_product),
        },
        "kth_distance": {
            "mqnet k=50": Contender(lambda job, data: neighbours.kth_distance(*data, 50)),
            "plain product": Contender(plain_product),
        },
        "k_centre": {
            "mqnet": Contender(lambda job, data: kcentre.k_centre_greedy(*data, job.n_picks)),
            "matrix-vector": Contender(lambda job, data: slow_k.k_centre_matvec(*data, job.n_picks)),
            "common loop": Contender(lambda job, data: slow_k.k_centre_common(*data, job.n_picks), 200_000, 100),
            "scikit-activeml": Contender(skactiveml_coreset, 50_000, 20),
        },
        "k_means_plus_plus": {
            "mqnet": Contender(lambda job, data: kmeanspp.k_means_plus_plus(data[0], data[1], job.n_picks, stream())),
            "matrix-vector": Contender(
                lambda job, data: slow_m.k_means_plus_plus_matvec(data[2], job.n_picks, stream()), 200_000
            ),
            "common loop": Contender(
                lambda job, data: slow_m.k_means_plus_plus_common(data[2].numpy(), job.n_picks, 0), 50_000, 20
            ),
            "scikit-learn": Contender(sklearn_seeding, 50_000, 100),
            "scikit-activeml": Contender(skactiveml_badge, 20_000, 10),
        },
        "log_det_cmi": {
            "mqnet": Contender(lambda job, data: submodular_logdet.log_det_cmi(*data, job.n_picks), 200_000),
            "submodlib": Contender(submodlib("LogDeterminantConditionalMutualInformationFunction"), 2_000, 20),
        },
        "facility_location_cmi": {
            "mqnet exact": Contender(
                lambda job, data: submodular_facility.facility_location_cmi(*data, job.n_picks), 50_000
            ),
            "mqnet sampled": Contender(
                lambda job, data: submodular_facility.facility_location_cmi(
                    *data, job.n_picks, sampled_items=20_000, generator=stream()
                )
            ),
            "submodlib": Contender(submodlib("FacilityLocationConditionalMutualInformationFunction"), 2_000, 50),
        },
    }
    return tables[piece]


PIECES = ("nearest_similarity", "kth_distance", "k_centre", "k_means_plus_plus", "log_det_cmi", "facility_location_cmi")


def limit_seconds(job: Job, rates: dict[str, float]) -> float:
    """What a direct computation needs at the machine's best rates: the larger of memory traffic and operations.

    Lazy forms skip part of the operations, so they may come out faster than this limit of the direct computation.
    """
    n, d, k, m = float(job.n), job.d, job.n_picks, job.n_labelled
    outputs, passes, flops, kind = job.n_classes + 1, 1.0, 0.0, "onednn_float32"
    if job.piece in ("nearest_similarity", "kth_distance"):
        flops = 2 * n * m * d
    elif job.piece == "k_centre":
        flops = 2 * n * d * (k + 100)
    elif job.piece == "k_means_plus_plus":
        flops, kind = 2 * n * (d + job.n_classes) * k, "mm_float64"
    elif job.piece == "log_det_cmi":
        rank = outputs * d
        flops = 2 * n * (min(rank, m) ** 2 + min(rank, 2 * m) ** 2) + 4 * n * d * outputs * k
        passes, kind = k, "mm_float64"
    else:
        flops = 2 * n * min(n, 20_000) * (d + outputs)
    return max(passes * n * d * 4 / rates["copy_bytes"], flops / rates[kind])


def child(job: Job) -> dict[str, Any]:
    contender = contenders(job.piece)[job.implementation]
    picks = min(job.n_picks, contender.most_picks)
    run = Job(**{**asdict(job), "n_picks": picks})
    data = inputs(run)
    rates = machine_rates()
    contender.run(Job(**{**asdict(run), "n": 64, "n_picks": 2}), inputs(Job(**{**asdict(run), "n": 64})))  # warm-up
    seconds, peak = measure(lambda: contender.run(run, data))
    return {**asdict(job), "seconds": seconds * job.n_picks / picks, "scaled": picks < job.n_picks, "peak_mb": peak,
            "limit_seconds": limit_seconds(job, rates), "rates": rates}  # fmt: skip


def measure_in_child(job: Job, timeout: float = 1800) -> dict[str, Any]:
    """The child's record, or {"error": ...}."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", json.dumps(asdict(job))]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {**asdict(job), "error": f"over {timeout} s"}
    if done.returncode:
        return {**asdict(job), "error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def compare(title: str, jobs: list[Job], repeat: int) -> list[dict[str, Any]]:
    """All implementations of one piece in turns; prints the best time of each and its ratio to the first."""
    records: dict[str, dict[str, Any]] = {}
    for _ in range(repeat):
        for job in jobs:
            record = measure_in_child(job)
            kept = records.get(job.implementation)
            if kept is None or record.get("seconds", float("inf")) < kept.get("seconds", float("inf")):
                records[job.implementation] = record
    print(title, flush=True)
    first = next(iter(records.values())).get("seconds")
    for name, record in records.items():
        if "error" in record:
            print(f"  {name:16s} {record['error'][:90]}", flush=True)
            continue
        mark = "~" if record["scaled"] else " "
        ratio = f"{record['seconds'] / first:8.2f} x" if first else ""
        print(
            f"  {name:16s}{mark}{record['seconds']:9.2f} s {ratio} peak +{record['peak_mb']:6.0f} MB"
            f"  direct limit {record['limit_seconds']:7.2f} s = {record['limit_seconds'] / record['seconds']:5.0%}",
            flush=True,
        )
    return list(records.values())


def plot(records: list[dict[str, Any]], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(14, 8), constrained_layout=True)
    for piece, axis in zip(PIECES, axes.flat, strict=True):
        series: dict[str, list[tuple[int, float]]] = {}
        for record in records:
            if record["piece"] == piece and "seconds" in record:
                name = f"{record['implementation']}, K={record['n_classes']}, d={record['d']}"
                series.setdefault(name, []).append((record["n"], record["seconds"]))
        for name, points in series.items():
            points.sort()
            axis.loglog(*zip(*points, strict=True), "o-", label=name)
        axis.set(title=piece, xlabel="items", ylabel="seconds")
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 200_000, 1_000_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[4, 40])
    parser.add_argument("--pieces", nargs="+", choices=PIECES, default=list(PIECES))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="only these implementations")
    parser.add_argument("--quick", action="store_true", help="2,000 items, 50 picks")
    parser.add_argument("--targets", action="store_true", help="the promised sizes: 50,000 x 512 and 1,000,000 x 256")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(Job(**json.loads(options.child)))))
        return
    shapes = [(n, 256, k) for n in options.sizes for k in options.classes]
    if options.targets:
        shapes = [(20_000, 512, 4), (50_000, 512, 4), (1_000_000, 256, 4)]
    n_picks = 500
    if options.quick:
        shapes, n_picks = [(2_000, 64, 4)], 50
    records: list[dict[str, Any]] = []
    for piece in options.pieces:
        labelled = 5000 if piece in ("nearest_similarity", "kth_distance") else 2000
        for n, d, k in shapes:
            if k != shapes[0][2] and piece in ("nearest_similarity", "kth_distance", "k_centre"):
                continue  # these do not see the classes
            jobs = [
                Job(piece, name, n, d, k, n_picks, labelled if not options.quick else 200)
                for name, contender in contenders(piece).items()
                if n <= contender.most_items and (not options.only or name in options.only)
            ]
            if jobs:
                records += compare(jobs[0].title, jobs, options.repeat)
    if options.json:
        Path(options.json).write_text(json.dumps(records, indent=1))
    if options.plot:
        plot(records, options.plot)


if __name__ == "__main__":
    main()
