"""Time and memory of every numerical kernel against slow references and independent implementations.

    python benchmarks/numerics.py --quick
    python benchmarks/numerics.py --sizes 10000 50000 200000 1000000 --classes 4 40 --json out.json --plot out.png
    python benchmarks/numerics.py --baseline benchmarks/baselines/numerics.json        # what became slower
    python benchmarks/numerics.py --targets                                            # the promises, pass or miss

Each measurement runs in a child process of its own: inputs are made, the peak of the resident memory is reset, the
call is timed. Implementations of a piece take turns (`--repeat`), each child also measures a plain copy and plain
products. An implementation too slow for all picks runs fewer, and its time is scaled up (marked ~). On a machine that
others use, BENCH_CLOCK=processor with OMP_NUM_THREADS=1 counts the seconds that the process really had, on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import (  # noqa: E402
    CLOCK,
    Contender,
    Job,
    Record,
    against_baseline,
    compare,
    machine_rates,
    measure,
)
from benchmarks.targets import LONG_JOBS, TARGET_JOBS, verdicts  # noqa: E402

SCRIPT = Path(__file__).resolve()


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
                lambda job, data: slow_m.k_means_plus_plus_matvec(data[2], job.n_picks, stream()), most_entries=3e8
            ),
            "common loop": Contender(
                lambda job, data: slow_m.k_means_plus_plus_common(data[2].numpy(), job.n_picks, 0), 50_000, 20, 3e8
            ),
            "scikit-learn": Contender(sklearn_seeding, 50_000, 100, 3e8),
            "scikit-activeml": Contender(skactiveml_badge, 20_000, 10),
        },
        "log_det_cmi": {
            "mqnet": Contender(lambda job, data: submodular_logdet.log_det_cmi(*data, job.n_picks), most_entries=2.2e9),
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
    seconds, processor, peak, picked = measure(lambda: contender.run(run, data))
    times = {"wall_seconds": seconds * job.n_picks / picks, "processor_seconds": processor * job.n_picks / picks}
    record = {**asdict(job), **times, "seconds": times[f"{CLOCK}_seconds"], "scaled": picks < job.n_picks,
              "peak_mb": peak, "limit_seconds": limit_seconds(job, rates), "rates": rates}  # fmt: skip
    if job.piece == "facility_location_cmi" and job.implementation.startswith("mqnet") and job.n <= 50_000:
        record["objective"] = objective(data, picked)
    return record


def objective(data: Any, rows: Any) -> float:
    """What the picks are worth, in float64, every item of the pool counted."""
    from mqnet.numerics.submodular_facility import largest_cosine

    pool, query, private = data
    best, cap, floor = (largest_cosine(pool, part) for part in (pool.take(rows), query, private))
    return float((best.minimum(cap) - floor.clamp_min(0.0)).clamp_min(0.0).sum())


def pieces(sizes: list[int], classes: list[int], names: list[str], n_picks: int, d: int) -> list[list[Job]]:
    """The jobs of a grid, those that take turns together."""
    out: list[list[Job]] = []
    for piece in names:
        labelled = 5000 if piece in ("nearest_similarity", "kth_distance") else 2000
        for n in sizes:
            for k in classes:
                if k != classes[0] and piece in ("nearest_similarity", "kth_distance", "k_centre"):
                    continue  # these do not see the classes
                jobs = [Job(piece, name, n, d, k, n_picks, min(labelled, n // 2)) for name in contenders(piece)]
                out.append([job for job in jobs if contenders(piece)[job.implementation].takes(job)])
    return out


def plot(records: list[Record], path: str) -> None:
    """Seconds against items, a panel for each piece: ours in strong colours, the others in grey."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), constrained_layout=True, sharex=True)
    for piece, axis in zip(PIECES, axes.flat, strict=True):
        series: dict[tuple[str, int], list[tuple[int, float]]] = {}
        for record in records:
            if record["piece"] == piece and "seconds" in record:
                series.setdefault((record["implementation"], record["n_classes"]), []).append(
                    (record["n"], record["seconds"])
                )
        greys = iter(("0.35", "0.5", "0.65", "0.35", "0.5", "0.65"))
        seen: dict[str, Any] = {}
        for (name, k), points in series.items():
            ours = name.startswith("mqnet")
            if name not in seen:
                seen[name] = ("#d1495b" if "sampled" in name else "#00798c") if ours else next(greys)
            shapes = {"4": "-", "40": "--"}
            # others' second curve is told by its dashes: nine names would lie over the curves
            label = name if not ours or len({key[1] for key in series}) == 1 else f"{name}, K = {k}"
            label = label if ours or shapes.get(str(k)) == "-" else None
            axis.loglog(
                *zip(*sorted(points), strict=True), shapes.get(str(k), "-"), marker="o", markersize=3, label=label,
                color=seen[name], linewidth=2 if ours else 1,
            )  # fmt: skip
        axis.set_title(piece.replace("_", " "), fontsize=10)
        axis.grid(visible=True, color="0.92")
        axis.legend(fontsize=6.5, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[1]:
        axis.set_xlabel("items")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds")
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000, 200_000, 1_000_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[4, 40])
    parser.add_argument("--pieces", nargs="+", choices=PIECES, default=list(PIECES))
    parser.add_argument("--picks", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="only these implementations")
    parser.add_argument("--quick", action="store_true", help="2,000 items of 64 numbers, 50 picks")
    parser.add_argument("--targets", action="store_true", help="the promised sizes, 500 picks: pass or miss")
    parser.add_argument("--short", action="store_true", help="of the targets those that take less than a minute or two")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--from-json", type=Path, help="measure nothing: plot and compare these figures")
    parser.add_argument("--plot")
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--tolerance", type=float, default=1.5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(Job(**json.loads(options.child)))))
        return
    records: list[Record] = json.loads(options.from_json.read_text()) if options.from_json else []
    if options.quick:
        groups = pieces([2_000], [4], options.pieces, 50, 64)
    elif options.targets:
        groups = [group for group in TARGET_JOBS if group[0].piece in options.pieces]
        groups = [group for group in groups if not (options.short and group in LONG_JOBS)]
    else:
        groups = pieces(options.sizes, options.classes, options.pieces, options.picks, 256)
    for group in [] if options.from_json else groups:
        jobs = [job for job in group if not options.only or job.implementation in options.only]
        if jobs:
            records += compare(SCRIPT, jobs, options.repeat)
            if options.json:
                options.json.write_text(json.dumps(records, indent=1))
    if options.targets:
        print("\n".join(["", *verdicts(records)]))
    if options.plot:
        plot(records, options.plot)
    if options.baseline and against_baseline(records, options.baseline, options.tolerance):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
