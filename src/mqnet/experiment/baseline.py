"""Figures of an earlier `mqnet bench`, and what has become slower or larger since."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mqnet.errors import ConfigError
from mqnet.experiment.bench import Measured
from mqnet.experiment.limits import Job

NOTHING_SECONDS, NOTHING_MB = 0.02, 50.0  # differences below are the clock's and the allocator's


@dataclass(frozen=True)
class Before:
    """What an earlier run measured for a job."""

    seconds: float
    peak_mb: float
    limit_seconds: float


@dataclass(frozen=True)
class Change:
    """A job now and before. `slower` is the ratio of times, each in multiples of its own machine's limit."""

    now: Measured
    before: Before
    slower: float

    def regressed(self, tolerance: float) -> str:
        """What got worse by more than `tolerance`, in words, or nothing."""
        expected = self.now.seconds / self.slower
        if self.slower > tolerance and self.now.seconds - expected > NOTHING_SECONDS:
            return f"{self.now.seconds:.3f} s where {expected:.3f} s were expected"
        if self.now.peak_mb > tolerance * self.before.peak_mb + NOTHING_MB:
            return f"{self.now.peak_mb:.0f} MB at its peak where it took {self.before.peak_mb:.0f} MB"
        return ""


def read_baseline(path: Path) -> dict[Job, Before]:
    """The figures that `mqnet bench --out` kept."""
    if not path.is_file():
        raise ConfigError(f"the baseline '{path}' does not exist. `mqnet bench --out FILE` writes one.")
    try:
        records: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["measured"]
        return {_made(Job, record): _made(Before, record) for record in records}
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"'{path}' does not hold the figures of `mqnet bench --out` ({error!r}).") from error


def compare(found: Sequence[Measured], baseline: dict[Job, Before]) -> list[Change]:
    """The jobs that both know.

    Times are taken in multiples of each run's own limit, so that a slower machine, or a busier one, is no regression.
    """
    out: list[Change] = []
    for now in found:
        before = baseline.get(now.job)
        if before is not None:
            out.append(Change(now, before, now.seconds / now.limit_seconds / (before.seconds / before.limit_seconds)))
    return out


def _made(kind: type[Any], record: dict[str, Any]) -> Any:
    return kind(**{field.name: record[field.name] for field in fields(kind)})
