"""A strategy against all others, at every setting: where it wins, ties and loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mqnet.experiment.comparison import holm, t_test
from mqnet.experiment.results import Results
from mqnet.experiment.summary import ORACLE

ALPHA = 0.05


@dataclass(frozen=True)
class Contest:
    """The favourite's final accuracy against another strategy's at one setting, paired over seeds."""

    setting: str
    other: str
    n_seeds: int
    outcome: Literal["wins", "ties", "loses"]


def contests(results: Results, favourite: str) -> list[Contest]:
    """The favourite against every strategy but the oracle, at every setting where both ran.

    It wins or loses where the paired t test, corrected by Holm over the setting's strategies, says so, else it ties.
    """
    out: list[Contest] = []
    for scenario, share in results.settings:
        found: list[tuple[str, int, float, float]] = []
        for other in results.strategies:
            pair = results.paired(scenario, share, favourite, other) if other not in (favourite, ORACLE) else None
            if pair is not None:
                mine, theirs = (curves["accuracy"][:, -1] for curves in pair)
                test = t_test(mine, theirs)
                found.append((other, len(mine), test.difference.value, test.p))
        for (other, n, difference, _), p in zip(found, holm([p for *_, p in found]), strict=True):
            told = p < ALPHA  # NaN, where there is no test, is no win
            outcome = ("wins" if difference > 0 else "loses") if told else "ties"
            out.append(Contest(setting_name(results, scenario, share), other, n, outcome))
    return out


def reading(found: Sequence[Contest], favourite: str) -> str:
    """Where the favourite wins, ties and loses, in a sentence or two."""
    if not found:
        return f"{favourite} did not run beside another strategy here."
    few, many = min(one.n_seeds for one in found), max(one.n_seeds for one in found)
    if few < 2:
        return "One seed: differences have no interval, and nothing can be said about who wins."
    seeds = f"{many}" if few == many else f"{few} to {many}"
    n_settings = len({one.setting for one in found})
    parts: list[str] = []
    for outcome in ("wins", "loses"):
        by_other: dict[str, list[str]] = {}
        for one in found:
            if one.outcome == outcome:
                by_other.setdefault(one.other, []).append(one.setting)
        named = "; ".join(
            other if len(where) == n_settings else f"{other} ({', '.join(where)})" for other, where in by_other.items()
        )
        n = sum(map(len, by_other.values()))
        parts.append(f"**{outcome}** {n} of {len(found)} comparisons" + (f" (against {named})" if named else ""))
    n_ties = sum(one.outcome == "ties" for one in found)
    return (
        f"In final accuracy, over {seeds} paired seeds and after Holm's correction, {favourite} {parts[0]}, "
        f"**ties** {n_ties}, and {parts[1]}."
    )


def setting_name(results: Results, scenario: str, share: float) -> str:
    """What a setting is called: its OOD share, after what tells its scenario from the others."""
    alone = len(results.scenarios) == 1
    return f"{share:.0%} OOD" if alone else f"{scenario.rpartition(', ')[2]}, {share:.0%} OOD"
