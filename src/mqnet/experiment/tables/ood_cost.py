"""The paper's table of the cost of an OOD label."""

from __future__ import annotations

from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import (
    EMPTY,
    Number,
    emphasis,
    is_reference,
    n_seeds,
    percent,
    setting_columns,
    setting_names,
)
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Place, Table


@kind_of_table("ood-cost")
def ood_cost(results: Results, *, deviation: bool = True) -> Table:
    """Final accuracy for each cost of an OOD label, the budget of a round being the same."""
    costs = sorted(results.costs)
    at_cost = {cost: results.only(costs=[cost]) for cost in costs}
    plain = list(at_cost.values())
    settings = list(dict.fromkeys(setting for one in plain for setting in one.settings))
    alone = plain[0] if len({scenario for scenario, _ in settings}) == 1 else results
    rows: list[tuple[str, ...]] = []
    rules: list[int] = []
    best: list[Place] = []
    second: list[Place] = []
    for scenario, share in settings:
        names = setting_names(alone, scenario, share)
        shown = [
            strategy
            for strategy in results.strategies
            if any(one.get(scenario, share, strategy) is not None for one in plain)
        ]
        numbers = [[_final(at_cost[cost], scenario, share, name, deviation) for cost in costs] for name in shown]
        contest = [i for i, name in enumerate(shown) if not is_reference(results, name)]
        first, runner_up = emphasis(
            [[numbers[i][c] for i in contest] for c in range(len(costs))],
            [[(len(rows) + i, c + len(names) + 1) for i in contest] for c in range(len(costs))],
        )
        best += first
        second += runner_up
        if rows:
            rules.append(len(rows))
        rows += [(*names, name, *(n.text for n in row)) for name, row in zip(shown, numbers, strict=True)]
    scenarios = dict.fromkeys(scenario for scenario, _ in settings)
    where = f"{next(iter(scenarios))}, " if len(scenarios) == 1 else ""
    return Table(
        f"Final accuracy (%) by the cost of an OOD label, {where}{n_seeds(results)}",
        (*setting_columns(alone), "strategy", *(f"c_OOD {cost:g}" for cost in costs)),
        tuple(rows),
        ("Mean and standard deviation over seeds. Dearer junk leaves fewer labels for the same budget.",),
        n_names=len(setting_columns(alone)) + 1,
        rules=tuple(rules),
        best=tuple(best),
        second=tuple(second),
    )


def _final(results: Results, scenario: str, share: float, strategy: str, deviation: bool) -> Number:
    curves = results.get(scenario, share, strategy)
    return EMPTY if curves is None else percent(curves["accuracy"][:, -1], deviation)
