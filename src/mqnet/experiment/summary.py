"""A grid in one table per setting, and in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mqnet.experiment.notes import reserve_notes
from mqnet.experiment.results import Curves, Results
from mqnet.experiment.statistics import Interval, aulc, aulc_cost, oracle_gap, paired_difference
from mqnet.experiment.tables.shape import Table

RANDOM, ORACLE = "random", "oracle-purity"


@dataclass(frozen=True)
class Summary:
    """One strategy at one setting, over seeds."""

    strategy: str
    accuracy: np.ndarray
    aulc: np.ndarray
    aulc_cost: np.ndarray
    known_share: float
    wasted: float
    purity_auroc: float
    over_random: Interval | None
    gap_closed: Interval | None


def summarise(results: Results, scenario: str, ood_share: float) -> list[Summary]:
    """Every strategy's numbers at one setting, in the grid's order."""
    out: list[Summary] = []
    for strategy in results.strategies:
        curves = results.get(scenario, ood_share, strategy)
        if curves is None:
            continue
        versus = results.paired(scenario, ood_share, strategy, RANDOM) if strategy != RANDOM else None
        closed = results.paired(scenario, ood_share, strategy, RANDOM, ORACLE)
        fair = closed is not None and strategy not in (RANDOM, ORACLE)
        out.append(
            Summary(
                strategy=strategy,
                accuracy=curves["accuracy"][:, -1],
                aulc=aulc(curves["accuracy"]),
                aulc_cost=aulc_cost(curves["accuracy"], curves["spent"]),
                known_share=_mean(curves["query_known_share"]),
                wasted=float(curves.cost_ood * wasted(curves)[:, -1].mean()),
                purity_auroc=_mean(curves["purity_auroc"]),
                over_random=paired_difference(*[aulc(c["accuracy"]) for c in versus]) if versus else None,
                gap_closed=oracle_gap(*[aulc(c["accuracy"]) for c in closed]) if fair and closed else None,
            )
        )
    return out


def wasted(curves: Curves) -> np.ndarray:
    """Junk bought before each round's query [S, R], the initial sample's left out: no strategy picked it."""
    return curves["n_ood"] - curves["n_ood"][:, :1]


def tables(results: Results) -> list[Table]:
    """One table per scenario and OOD share."""
    return [_table(results, scenario, share) for scenario, share in results.settings]


def _table(results: Results, scenario: str, share: float) -> Table:
    rows = summarise(results, scenario, share)
    n_seeds = max((len(row.accuracy) for row in rows), default=0)
    seeds = f"{n_seeds} seed{'s' if n_seeds != 1 else ''}"
    shown = tuple(_row(row) for row in rows)
    return Table(
        title=f"{scenario}, {share:.0%} OOD, {seeds}",
        columns=(
            "strategy", "final accuracy", "AULC", "AULC-cost", "over random (AULC, points)", "oracle gap closed",
            "known in queries", "spent on OOD", "purity AUROC",
        ),
        rows=shown,
        notes=reserve_notes(results, shown),
    )  # fmt: skip


def _row(row: Summary) -> tuple[str, ...]:
    return (
        row.strategy,
        mean_and_deviation(row.accuracy),
        f"{100 * row.aulc.mean():.2f}",
        f"{100 * row.aulc_cost.mean():.2f}",
        points(row.over_random),
        interval(row.gap_closed),
        _share(row.known_share),
        f"{row.wasted:.0f}",
        "" if np.isnan(row.purity_auroc) else f"{row.purity_auroc:.3f}",
    )


def compact(results: Results) -> list[Table]:
    """The same in columns that fit a terminal, without intervals."""
    out: list[Table] = []
    for full, (scenario, share) in zip(tables(results), results.settings, strict=True):
        rows = summarise(results, scenario, share)
        head = ("strategy", "accuracy", "AULC", "over random", "gap closed", "known", "on OOD")
        found = tuple(
            (
                row.strategy,
                mean_and_deviation(row.accuracy),
                f"{100 * row.aulc.mean():.2f}",
                f"{100 * row.over_random.value:+.2f}" if row.over_random else "",
                f"{row.gap_closed.value:.2f}" if row.gap_closed and not np.isnan(row.gap_closed.value) else "",
                _share(row.known_share),
                f"{row.wasted:.0f}",
            )
            for row in rows
        )
        out.append(Table(full.title, head, found, full.notes))
    return out


def comparisons(results: Results, favourite: str) -> list[Table]:
    """The favourite's AULC minus every other strategy's, paired over seeds: a column per OOD share, and over all."""
    out: list[Table] = []
    for scenario in dict.fromkeys(scenario for scenario, _ in results.settings):
        shares = [share for name, share in results.settings if name == scenario]
        rows: list[tuple[str, ...]] = []
        for other in results.strategies:
            pairs = [results.paired(scenario, share, favourite, other) for share in shares]
            present = [[aulc(curves["accuracy"]) for curves in pair] for pair in pairs if pair is not None]
            if other == favourite or len(present) < len(shares):
                continue
            # over all shares: each seed's mean difference, so that seeds stay the unit of chance
            same = all(pair is not None and pair[0].seeds == (pairs[0] or pair)[0].seeds for pair in pairs)
            overall = points(paired_difference(*np.mean(present, axis=0))) if same else ""
            rows.append((other, *(points(paired_difference(*pair)) for pair in present), overall))
        head = (f"{favourite} minus", *(f"{share:.0%} OOD" for share in shares), "mean over shares")
        out.append(
            Table(f"{scenario}: paired differences in AULC, points, with 95% intervals over seeds", head, tuple(rows))
        )
    return out


def gaps(results: Results) -> list[Table]:
    """The oracle gap closed by every strategy: a column per OOD share, and their mean."""
    out: list[Table] = []
    for scenario in dict.fromkeys(scenario for scenario, _ in results.settings):
        shares = [share for name, share in results.settings if name == scenario]
        rows: list[tuple[str, ...]] = []
        for strategy in results.strategies:
            pairs = [results.paired(scenario, share, strategy, RANDOM, ORACLE) for share in shares]
            if strategy in (RANDOM, ORACLE) or any(pair is None for pair in pairs):
                continue
            found = [oracle_gap(*[aulc(curves["accuracy"]) for curves in pair]) for pair in pairs if pair is not None]
            rows.append((strategy, *map(interval, found), f"{np.mean([gap.value for gap in found]):.2f}"))
        head = ("strategy", *(f"{share:.0%} OOD" for share in shares), "mean")
        out.append(
            Table(f"{scenario}: oracle gap closed, with 95% intervals by bootstrap over seeds", head, tuple(rows))
        )
    return [table for table in out if table.rows]


def mean_and_deviation(values: np.ndarray) -> str:
    """'91.23 ± 0.45' in percent; the deviation needs two seeds."""
    deviation = f" ± {100 * values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{100 * values.mean():.2f}{deviation}"


def points(found: Interval | None) -> str:
    """A difference in percentage points with its interval: '+1.20 [+0.80, +1.60]'."""
    if found is None:
        return ""
    bounds = "" if np.isnan(found.low) else f" [{100 * found.low:+.2f}, {100 * found.high:+.2f}]"
    return f"{100 * found.value:+.2f}{bounds}"


def interval(found: Interval | None) -> str:
    """A ratio with its interval: '0.62 [0.41, 0.80]'; empty where there is no gap to close."""
    if found is None or np.isnan(found.value):
        return ""
    bounds = "" if np.isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{bounds}"


def verdict(results: Results, favourite: str) -> str:
    """One sentence about the favourite strategy, at the first setting where it ran beside random."""
    for scenario, share in results.settings:
        rows = {row.strategy: row for row in summarise(results, scenario, share)}
        if favourite == RANDOM or favourite not in rows or RANDOM not in rows:
            continue
        mine, other = rows[favourite], rows[RANDOM]
        curves = results.get(scenario, share, favourite)
        spent = float(curves["spent"][:, -1].mean()) if curves else 0.0
        over = mine.over_random
        assert over is not None
        sure = not (np.isnan(over.low) or over.low <= 0 <= over.high)
        better = "above" if over.value > 0 else "below"
        evidence = "" if sure else ", a difference within the noise of the seeds"
        gap = mine.gap_closed
        closed = ""
        if gap is not None and not np.isnan(gap.value) and gap.value > 0:
            closed = f" and closes {gap.value:.0%} of the gap between random choice and perfect purity"
        return (
            f"For the same {spent:g} spent, {favourite} ends at {100 * mine.accuracy.mean():.1f}% accuracy (random "
            f"{100 * other.accuracy.mean():.1f}%), averages {abs(100 * over.value):.1f} points {better} random "
            f"over the rounds{evidence}{closed}; its queries spent {mine.wasted:.0f} on junk, random ones "
            f"{other.wasted:.0f}."
        )
    return "There is nothing to compare yet: run the favourite strategy beside random."


def favourite_of(strategies: Sequence[str]) -> str:
    """The strategy a report speaks of: mqnet if it ran, else the last that is no reference line."""
    for name in strategies:
        if name.startswith("mqnet"):
            return name
    return next((name for name in reversed(strategies) if name not in (RANDOM, ORACLE)), RANDOM)


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.0%}"


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")
