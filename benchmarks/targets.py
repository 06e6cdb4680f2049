"""What the project promises of its kernels' speed, and how a run's figures stand to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.harness import Job, Record, job_of

PICKS, LABELLED = 500, 2000


def _job(piece: str, implementation: str, n: int, d: int) -> Job:
    return Job(piece, implementation, n, d, 4, PICKS, LABELLED)


CENTRE, CENTRE_COMMON, CENTRE_PLAIN, CENTRE_OTHERS, CENTRE_MILLION = (
    _job("k_centre", "mqnet", 50_000, 512),
    _job("k_centre", "common loop", 50_000, 512),
    _job("k_centre", "matrix-vector", 50_000, 512),
    _job("k_centre", "scikit-activeml", 50_000, 512),
    _job("k_centre", "mqnet", 1_000_000, 256),
)
SEEDING, SEEDING_COMMON, SEEDING_PLAIN, SEEDING_OTHERS, SEEDING_MILLION = (
    _job("k_means_plus_plus", "mqnet", 50_000, 512),
    _job("k_means_plus_plus", "common loop", 50_000, 512),
    _job("k_means_plus_plus", "matrix-vector", 50_000, 512),
    _job("k_means_plus_plus", "scikit-learn", 50_000, 512),
    _job("k_means_plus_plus", "mqnet", 1_000_000, 256),
)
LOG_DET = _job("log_det_cmi", "mqnet", 50_000, 512)
FACILITY = _job("facility_location_cmi", "mqnet exact", 20_000, 512)
FACILITY_LARGE = _job("facility_location_cmi", "mqnet exact", 50_000, 512)
FACILITY_SAMPLED = _job("facility_location_cmi", "mqnet sampled", 50_000, 512)
FACILITY_MILLION = _job("facility_location_cmi", "mqnet sampled", 1_000_000, 256)

TARGET_JOBS: list[list[Job]] = [
    [CENTRE, CENTRE_PLAIN, CENTRE_COMMON, CENTRE_OTHERS],
    [CENTRE_MILLION],
    [SEEDING, SEEDING_PLAIN, SEEDING_COMMON, SEEDING_OTHERS],
    [SEEDING_MILLION],
    [LOG_DET],
    [FACILITY],
    [FACILITY_LARGE, FACILITY_SAMPLED],
    [FACILITY_MILLION],
]
LONG_JOBS: list[list[Job]] = [[FACILITY_LARGE, FACILITY_SAMPLED], [FACILITY_MILLION]]


@dataclass(frozen=True)
class Target:
    """A promise: `figure` of the records it needs must be at least (or below) `bound`."""

    text: str
    needs: tuple[Job, ...]
    figure: Callable[..., float]
    bound: float
    unit: str
    at_least: bool = False


def _seconds(record: Record) -> float:
    return record["seconds"]


def _ratio(ours: Record, theirs: Record) -> float:
    return theirs["seconds"] / ours["seconds"]


def _peak(*records: Record) -> float:
    return max(record["peak_mb"] for record in records)


def _share(exact: Record, sampled: Record) -> float:
    return sampled["objective"] / exact["objective"]


TARGETS = (
    Target("k-centre, 50,000 x 512, against the common loop", (CENTRE, CENTRE_COMMON), _ratio, 10, "x", True),
    Target("k-centre, 1,000,000 x 256", (CENTRE_MILLION,), _seconds, 60, "s"),
    Target("k-means++, 50,000, d 512, K 4, against the common loop", (SEEDING, SEEDING_COMMON), _ratio, 30, "x", True),
    Target("k-means++, against the best matrix-vector form", (SEEDING, SEEDING_PLAIN), _ratio, 2.5, "x", True),
    Target("k-means++, 1,000,000 x 256", (SEEDING_MILLION,), _seconds, 90, "s"),
    Target("log-det, 50,000, d 512, K 4, 2,000 + 2,000 labels", (LOG_DET,), _seconds, 60, "s"),
    Target("log-det, its memory", (LOG_DET,), _peak, 2000, "MB"),
    Target("facility location, exact at 20,000 x 512", (FACILITY,), _seconds, 600, "s"),
    Target("facility location, sampled, 1,000,000 x 256", (FACILITY_MILLION,), _seconds, 600, "s"),
    Target("facility location, sampled, its memory", (FACILITY_MILLION,), _peak, 8000, "MB"),
    Target("facility location, sampled, 50,000 x 512: objective", (FACILITY_LARGE, FACILITY_SAMPLED), _share, 0.95,
           "of the exact greedy's", True),
    Target("memory beyond the inputs, exact O(N) methods",
           (CENTRE, CENTRE_MILLION, SEEDING, SEEDING_MILLION, LOG_DET, FACILITY), _peak, 1000, "MB"),
)  # fmt: skip


def verdicts(records: list[Record]) -> list[str]:
    """A line for each promise: pass, miss, or what was not measured."""
    found = {job_of(record): record for record in records if "seconds" in record}
    lines: list[str] = []
    for target in TARGETS:
        missing = [job.title for job in target.needs if job not in found]
        if missing:
            lines.append(f"  ????  {target.text}: not measured ({missing[0]})")
            continue
        figure = target.figure(*(found[job] for job in target.needs))
        good = figure >= target.bound if target.at_least else figure < target.bound
        words = "at least" if target.at_least else "below"
        lines.append(
            f"  {'pass' if good else 'MISS'}  {target.text}: {figure:.3g} {target.unit} ({words} {target.bound:g})"
        )
    return lines
