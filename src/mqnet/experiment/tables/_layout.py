"""What tables share: numbers with their text, the best of a column, columns by setting, rounds side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.results import Curves, Results
from mqnet.experiment.statistics import Floats, aulc, aulc_cost
from mqnet.experiment.summary import ORACLE, favourite_of
from mqnet.experiment.tables.shape import Place

NAN = float("nan")


@dataclass(frozen=True)
class Number:
    """A cell: its text, and the value that places it among the others (as printed: what reads alike ties)."""

    text: str
    value: float


EMPTY = Number("", NAN)


def percent(values: Floats, deviation: bool = True) -> Number:
    """Mean in percent and its deviation over seeds: '91.23 ± 0.45'."""
    return spread(100 * np.asarray(values), deviation)


def spread(values: Floats, deviation: bool = True, digits: int = 2) -> Number:
    """Mean and deviation over seeds; the deviation needs two seeds. Empty where a seed has no number."""
    if not len(values) or np.isnan(values).any():
        return EMPTY
    more = f" ± {values.std(ddof=1):.{digits}f}" if deviation and len(values) > 1 else ""
    text = f"{values.mean():.{digits}f}"
    return Number(text + more, float(text))


def mean_over_seeds(values: Floats) -> Floats:
    """Means of the columns [R] of [S, R], over the seeds that have a number; NaN where none has."""
    there = ~np.isnan(values)
    n = there.sum(axis=0)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def is_reference(results: Results, strategy: str) -> bool:
    """Does it see the truth? Such a line is shown, but takes no part in a contest."""
    return results.plugin(strategy).name == ORACLE


def emphasis(
    columns: Sequence[Sequence[Number]], places: Sequence[Sequence[Place]], *, lowest: bool = False
) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """Places of the best and of the second best number of each list; ties share. One number alone is no contest."""
    best: list[Place] = []
    second: list[Place] = []
    for numbers, where in zip(columns, places, strict=True):
        values = sorted({n.value for n in numbers if np.isfinite(n.value)}, reverse=not lowest)
        if sum(np.isfinite(n.value) for n in numbers) < 2:
            continue
        for rank, out in zip(values[:2], (best, second), strict=False):
            out += [place for n, place in zip(numbers, where, strict=True) if n.value == rank]
    return tuple(best), tuple(second)


def n_seeds(results: Results) -> str:
    """'5 seeds', or '3 to 5 seeds' where some are missing."""
    found = {
        len(curves.seeds)
        for scenario, share in results.settings
        for strategy in results.strategies
        if (curves := results.get(scenario, share, strategy)) is not None
    }
    low, high = min(found), max(found)
    return f"{high} seed{'s' if high != 1 else ''}" if low == high else f"{low} to {high} seeds"


def share_text(share: float) -> str:
    """'40%'."""
    return f"{100 * share:g}%"


def title(what: str, results: Results, *more: str) -> str:
    """What a table shows, of which scenario if there is one only, over how many seeds."""
    scenarios = results.scenarios
    return ", ".join([what, *(scenarios if len(scenarios) == 1 else ()), *more, n_seeds(results)])


def setting_heads(results: Results) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """A column per scenario and OOD share, and the scenarios that span them if there are several."""
    scenarios = results.scenarios
    alone = len(scenarios) == 1
    heads = tuple(f"{share_text(share)} OOD" if alone else share_text(share) for _, share in results.settings)
    spans = tuple((name, sum(scenario == name for scenario, _ in results.settings)) for name in scenarios)
    return heads, () if alone else spans


@dataclass(frozen=True)
class Body:
    """Rows of numbers under columns of settings."""

    rows: tuple[tuple[str, ...], ...]
    best: tuple[Place, ...]
    second: tuple[Place, ...]


def by_setting(
    results: Results,
    cell: Callable[[Curves], Number],
    *,
    strategies: Sequence[str] | None = None,
    names: Callable[[str], tuple[str, ...]] = lambda strategy: (strategy,),
    lowest: bool = False,
    second: bool = True,
) -> Body:
    """A row per strategy, a column per setting; the best of a column among those that do not see the truth."""
    shown = results.strategies if strategies is None else list(strategies)
    grid = [
        [cell(curves) if (curves := results.get(*setting, strategy)) is not None else EMPTY for strategy in shown]
        for setting in results.settings
    ]
    n_names = len(names(shown[0])) if shown else 1
    contest = [i for i, strategy in enumerate(shown) if not is_reference(results, strategy)]
    first, runner_up = emphasis(
        [[column[i] for i in contest] for column in grid],
        [[(i, c + n_names) for i in contest] for c in range(len(grid))],
        lowest=lowest,
    )
    rows = tuple((*names(strategy), *(column[i].text for column in grid)) for i, strategy in enumerate(shown))
    return Body(rows, first, runner_up if second else ())


@dataclass(frozen=True)
class Line:
    """A row of numbers over rounds: its names, its values [R] and how they are written."""

    names: tuple[str, ...]
    values: Floats
    digits: int = 2
    contest: str = ""
    """Rows of the same contest are compared, round by round; an empty one is in none."""


@dataclass(frozen=True)
class Rounds:
    """Columns, rows and places of a table over rounds."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    rules: tuple[int, ...]
    best: tuple[Place, ...]
    second: tuple[Place, ...]


def by_round(lines: Sequence[Line], *, every: int, rule_above: Sequence[int]) -> Rounds:
    """A column per round (each `every`-th), a row per line; shorter campaigns leave their last columns empty."""
    if every < 1:
        raise InputError(f"every is {every}: 1 shows each round, 2 every second one.")
    n_rounds = max((len(line.values) for line in lines), default=0)
    shown = [r for r in range(n_rounds) if (r + 1) % every == 0]
    n_names = len(lines[0].names) if lines else 1
    numbers = [
        [
            Number(text := f"{line.values[r]:.{line.digits}f}", float(text))
            if r < len(line.values) and np.isfinite(line.values[r])
            else EMPTY
            for r in shown
        ]
        for line in lines
    ]
    contests = dict.fromkeys(line.contest for line in lines if line.contest)
    columns: list[list[Number]] = []
    places: list[list[Place]] = []
    for contest in contests:
        members = [i for i, line in enumerate(lines) if line.contest == contest]
        for c in range(len(shown)):
            columns.append([numbers[i][c] for i in members])
            places.append([(i, c + n_names) for i in members])
    best, second = emphasis(columns, places)
    rows = tuple((*line.names, *(n.text for n in row)) for line, row in zip(lines, numbers, strict=True))
    return Rounds(tuple(str(r + 1) for r in shown), rows, tuple(rule_above), best, second)


def setting_names(results: Results, scenario: str, share: float) -> tuple[str, ...]:
    """How a row over rounds names its setting: the share, after the scenario if there are several."""
    return (share_text(share),) if len(results.scenarios) == 1 else (scenario, share_text(share))


def setting_columns(results: Results) -> tuple[str, ...]:
    """The heads of those names."""
    return ("OOD",) if len(results.scenarios) == 1 else ("scenario", "OOD")


METRICS: dict[str, tuple[str, Callable[[Curves], Floats]]] = {
    "aulc": ("AULC", lambda curves: aulc(curves["accuracy"])),
    "final": ("final accuracy", lambda curves: curves["accuracy"][:, -1]),
    "aulc-cost": ("AULC-cost", lambda curves: aulc_cost(curves["accuracy"], curves["spent"])),
}
"""Numbers per seed that strategies are compared by."""


def favourite_among(results: Results, wanted: str | None) -> str:
    """The strategy a table speaks of: the one asked for, else mqnet if it ran, else the last that is no reference."""
    if wanted is None:
        return favourite_of(results.strategies)
    if wanted not in results.strategies:
        raise InputError(f"no strategy is called '{wanted}' here; there is {', '.join(results.strategies)}.")
    return wanted
