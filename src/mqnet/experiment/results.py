"""Results of a grid: rows on disk, curves in memory."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqnet.errors import InputError
from mqnet.experiment.simulate import RoundResult
from mqnet.store.blobs import write_durably

CELL_COLUMNS = ("scenario", "strategy", "ood_share", "seed")
COLUMNS = (*CELL_COLUMNS, *(field.name for field in fields(RoundResult)), "cell")
INTEGERS = ("round", "n_known", "n_ood")


@dataclass(frozen=True)
class Row:
    """One round of one cell."""

    scenario: str
    strategy: str
    ood_share: float
    seed: int
    result: RoundResult
    cell: str


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write `results.csv`, whole or not at all; numbers that do not exist are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = [getattr(row.result, field.name) for field in fields(RoundResult)]
        writer.writerow([row.scenario, row.strategy, row.ood_share, row.seed, *map(_shown, values), row.cell])
    write_durably(path, text.getvalue().encode())


def read_rows(path: Path) -> list[Row]:
    """The rows of a `results.csv`."""
    if not path.is_file():
        raise InputError(f"'{path}' does not exist: no cell has finished there yet.")
    with path.open(encoding="utf-8", newline="") as file:
        return [_row(record) for record in csv.DictReader(file)]


def _shown(value: float) -> str:
    return "" if isinstance(value, float) and math.isnan(value) else str(value)  # of numpy's numbers too


def _row(record: dict[str, str]) -> Row:
    values: dict[str, Any] = {
        field.name: int(record[field.name]) if field.name in INTEGERS else float(record.get(field.name) or "nan")
        for field in fields(RoundResult)
    }
    return Row(
        scenario=record["scenario"],
        strategy=record["strategy"],
        ood_share=float(record["ood_share"]),
        seed=int(record["seed"]),
        result=RoundResult(**values),
        cell=record["cell"],
    )


@dataclass(frozen=True)
class Curves:
    """Every seed's rounds of one strategy at one scenario and OOD share, as arrays [seeds, rounds]."""

    scenario: str
    strategy: str
    ood_share: float
    seeds: tuple[int, ...]
    rows: tuple[tuple[RoundResult, ...], ...]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """A reported number of every round [S, R]."""
        return np.asarray([[getattr(result, name) for result in rounds] for rounds in self.rows], dtype=np.float64)

    @property
    def n_asked(self) -> NDArray[np.float64]:
        """Items bought in each round's query [S, R - 1]: the last round's query shows in no later row."""
        bought = self["n_known"] + self["n_ood"]
        return np.diff(bought, axis=1)

    def of_seeds(self, seeds: Sequence[int]) -> Curves:
        """The same, for these seeds in this order."""
        rows = tuple(self.rows[self.seeds.index(seed)] for seed in seeds)
        return Curves(self.scenario, self.strategy, self.ood_share, tuple(seeds), rows)


class Results:
    """All curves of a grid, in the order of their first appearance."""

    def __init__(self, rows: Iterable[Row]) -> None:
        grouped: dict[tuple[str, float, str], dict[int, list[RoundResult]]] = {}
        for row in rows:
            cell = grouped.setdefault((row.scenario, row.ood_share, row.strategy), {})
            cell.setdefault(row.seed, []).append(row.result)
        self._curves: dict[tuple[str, float, str], Curves] = {}
        for key, by_seed in grouped.items():
            n_rounds = max(len(rounds) for rounds in by_seed.values())
            # a campaign that ran out of pool has fewer rounds: its last one stands for those it did not reach
            rows_ = tuple((*rounds, *[rounds[-1]] * (n_rounds - len(rounds))) for rounds in by_seed.values())
            self._curves[key] = Curves(key[0], key[2], key[1], tuple(by_seed), rows_)

    @property
    def settings(self) -> list[tuple[str, float]]:
        """Every (scenario, OOD share)."""
        return list(dict.fromkeys((scenario, share) for scenario, share, _ in self._curves))

    @property
    def strategies(self) -> list[str]:
        """Every strategy."""
        return list(dict.fromkeys(strategy for _, _, strategy in self._curves))

    def get(self, scenario: str, ood_share: float, strategy: str) -> Curves | None:
        """The curves of one strategy, None where it has not run."""
        return self._curves.get((scenario, ood_share, strategy))

    def paired(self, scenario: str, ood_share: float, *strategies: str) -> list[Curves] | None:
        """The curves of several strategies over the seeds they share; None if one is missing or they share none."""
        found = [self.get(scenario, ood_share, strategy) for strategy in strategies]
        present = [curves for curves in found if curves is not None]
        if len(present) < len(strategies):
            return None
        seeds = [seed for seed in present[0].seeds if all(seed in curves.seeds for curves in present)]
        return [curves.of_seeds(seeds) for curves in present] if seeds else None
