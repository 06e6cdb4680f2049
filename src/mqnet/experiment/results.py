"""Results of a grid: rows on disk, curves in memory."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqnet.errors import InputError
from mqnet.experiment.simulate import RoundResult
from mqnet.store.blobs import write_durably
from mqnet.types import Plugin

CELL_COLUMNS = ("scenario", "strategy", "ood_share", "cost_ood", "seed")
COLUMNS = (*CELL_COLUMNS, *(field.name for field in fields(RoundResult)), "cell")
NEEDED = tuple(
    name for name in COLUMNS if name not in {f.name for f in fields(RoundResult) if f.default is not MISSING}
)
INTEGERS = ("round", "n_known", "n_ood")
STANDING = ("round", "accuracy", "spent", "n_known", "n_ood", "recall_known")
"""What a campaign's last round says of the rounds it did not reach; the other numbers are of a query never made."""

Setting = tuple[str, float, float]
"""Scenario, cost of an OOD label, OOD share."""


@dataclass(frozen=True)
class Row:
    """One round of one cell."""

    scenario: str
    strategy: str
    ood_share: float
    seed: int
    result: RoundResult
    cell: str
    cost_ood: float = 1.0


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write `results.csv`, whole or not at all; numbers that do not exist are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = [getattr(row.result, field.name) for field in fields(RoundResult)]
        setting = [row.scenario, row.strategy, row.ood_share, row.cost_ood, row.seed]
        writer.writerow([*setting, *map(_shown, values), row.cell])
    write_durably(path, text.getvalue().encode())


def read_rows(path: Path) -> list[Row]:
    """The rows of a `results.csv`."""
    if not path.is_file():
        raise InputError(f"'{path}' does not exist: no cell has finished there yet.")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(
                f"'{path}' has no column {', '.join(missing)}: another version of mqnet wrote it. `mqnet run` with the "
                "same --out writes it anew."
            )
        return [_row(record) for record in reader]


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
        cost_ood=float(record["cost_ood"]),
    )


@dataclass(frozen=True)
class Curves:
    """Every seed's rounds of one strategy at one scenario and OOD share, as arrays [seeds, rounds].

    As many rounds as the longest campaign of the setting had, whatever its strategy: what is averaged over rounds is
    averaged over the same ones. A campaign that ended before (its pool or its total budget used up) stands still.
    """

    scenario: str
    strategy: str
    ood_share: float
    seeds: tuple[int, ...]
    rows: tuple[tuple[RoundResult, ...], ...]
    cost_ood: float = 1.0

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
        return replace(self, seeds=tuple(seeds), rows=rows)


class Results:
    """All curves of a grid, in the order of their first appearance.

    A grid over several costs of an OOD label counts each of them as a scenario of its own (`cifar10, OOD cost 2`).
    `plugins` says which strategy with which options stands behind a label; without it the label tells.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        plugins: Mapping[str, Plugin] | None = None,
        lengths: Mapping[Setting, int] | None = None,
    ) -> None:
        self.rows = tuple(rows)
        self._lengths = dict(lengths) if lengths is not None else _lengths(self.rows)
        self._plugins = dict(plugins or {})
        self.costs = tuple(dict.fromkeys(row.cost_ood for row in self.rows))
        grouped: dict[tuple[str, float, str], dict[int, list[RoundResult]]] = {}
        costs: dict[str, float] = {}
        n_rounds: dict[tuple[str, float], int] = {}
        for row in self.rows:
            scenario = row.scenario if len(self.costs) < 2 else f"{row.scenario}, OOD cost {row.cost_ood:g}"
            costs[scenario] = row.cost_ood
            n_rounds[scenario, row.ood_share] = self._lengths[row.scenario, row.cost_ood, row.ood_share]
            grouped.setdefault((scenario, row.ood_share, row.strategy), {}).setdefault(row.seed, []).append(row.result)
        self._curves: dict[tuple[str, float, str], Curves] = {}
        for key, by_seed in grouped.items():
            rows_ = tuple(_as_long_as(n_rounds[key[:2]], rounds) for rounds in by_seed.values())
            self._curves[key] = Curves(key[0], key[2], key[1], tuple(by_seed), rows_, costs[key[0]])

    @cached_property
    def settings(self) -> list[tuple[str, float]]:
        """Every (scenario, OOD share), scenario by scenario."""
        found = list(dict.fromkeys((scenario, share) for scenario, share, _ in self._curves))
        order = list(dict.fromkeys(scenario for scenario, _ in found))
        return sorted(found, key=lambda setting: order.index(setting[0]))

    @property
    def scenarios(self) -> list[str]:
        """Every scenario."""
        return list(dict.fromkeys(scenario for scenario, _ in self.settings))

    @property
    def strategies(self) -> list[str]:
        """Every strategy."""
        return list(dict.fromkeys(strategy for _, _, strategy in self._curves))

    def plugin(self, strategy: str) -> Plugin:
        """The strategy behind a label: as the grid says, else as the label reads (`mqnet(skyline=False)`)."""
        return self._plugins.get(strategy) or _from_label(strategy)

    def only(
        self,
        *,
        strategies: Sequence[str] = (),
        scenarios: Sequence[str] = (),
        shares: Sequence[float] = (),
        costs: Sequence[float] = (),
    ) -> Results:
        """The results of these strategies (in this order), scenarios, OOD shares and costs; nothing named: of all."""
        for what, wanted, there in (
            ("strategy", strategies, {row.strategy for row in self.rows}),
            ("scenario", scenarios, {row.scenario for row in self.rows}),
            ("OOD share", shares, {row.ood_share for row in self.rows}),
            ("cost of an OOD label", costs, set(self.costs)),
        ):
            for name in wanted:
                if name not in there:
                    raise InputError(f"no {what} is '{name}' here; there is {', '.join(map(str, sorted(there)))}.")
        rows = [
            row
            for row in self.rows
            if (not strategies or row.strategy in strategies)
            and (not scenarios or row.scenario in scenarios)
            and (not shares or row.ood_share in shares)
            and (not costs or row.cost_ood in costs)
        ]
        if strategies:
            rows.sort(key=lambda row: list(strategies).index(row.strategy))
        return Results(rows, self._plugins, self._lengths)  # as long as with the strategies that are left out

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


def _lengths(rows: Iterable[Row]) -> dict[Setting, int]:
    """The rounds of the longest campaign of every setting."""
    n_rounds: dict[tuple[Setting, str, int], int] = {}
    for row in rows:
        campaign = (row.scenario, row.cost_ood, row.ood_share), row.strategy, row.seed
        n_rounds[campaign] = n_rounds.get(campaign, 0) + 1
    out: dict[Setting, int] = {}
    for (setting, *_), n in n_rounds.items():
        out[setting] = max(n, out.get(setting, 0))
    return out


def _as_long_as(n_rounds: int, rounds: Sequence[RoundResult]) -> tuple[RoundResult, ...]:
    """These rounds and, up to `n_rounds`, what the last one says of those the campaign did not reach."""
    absent: dict[str, Any] = {field.name: math.nan for field in fields(RoundResult) if field.name not in STANDING}
    return (*rounds, *[replace(rounds[-1], **absent)] * (n_rounds - len(rounds)))


def _from_label(label: str) -> Plugin:
    name, _, rest = label.partition("(")
    if not rest.endswith(")"):
        return Plugin(label)
    pairs = [text.partition("=") for text in rest[:-1].split(", ")]
    if not all(equals for _, equals, _ in pairs):
        return Plugin(label)
    words: dict[str, object] = {"True": True, "False": False}
    return Plugin(name, {option: words.get(value, value) for option, _, value in pairs})
