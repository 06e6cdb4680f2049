"""Pairs of mqnet that differ in one option only: the paper's ablations."""

from __future__ import annotations

from mqnet.errors import InputError
from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import by_setting, percent, setting_heads, title
from mqnet.experiment.tables.shape import Table
from mqnet.registry import STRATEGY


def ablation(
    results: Results, what: str, option: str, head: str, texts: dict[object, str], notes: tuple[str, ...] = ()
) -> Table:
    """Final accuracy of every mqnet that has a counterpart which differs in `option` alone, the best marked."""
    shown = _counterparts(results, option)
    if not shown:
        raise InputError(
            f"the results hold no two mqnet strategies that differ in `{option}` only. Add both to the grid, for "
            f'example "mqnet" and {{ name = "mqnet", {option} = {_toml(list(texts)[-1])} }}.'
        )

    def names(strategy: str) -> tuple[str, ...]:
        value = results.plugin(strategy).options.get(option, next(iter(texts)))
        return strategy, texts.get(value, str(value))

    columns, spans = setting_heads(results)
    body = by_setting(
        results, lambda curves: percent(curves["accuracy"][:, -1]), strategies=shown, names=names, second=False
    )
    return Table(
        title(f"{what}: final accuracy (%)", results),
        ("strategy", head, *columns),
        body.rows,
        ("Mean and standard deviation over seeds.", *notes),
        n_names=2,
        spans=spans,
        best=body.best,
    )


def _counterparts(results: Results, option: str) -> list[str]:
    rest: dict[str, list[str]] = {}
    for strategy in results.strategies:
        plugin = results.plugin(strategy)
        if plugin.name == "mqnet":
            others = sorted((name, str(value)) for name, value in plugin.options.items() if name != option)
            rest.setdefault(str(others), []).append(strategy)
    return [strategy for group in rest.values() if len(group) > 1 for strategy in group]


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def inputs_of(results: Results, strategy: str) -> tuple[str, str]:
    """The purity and the informativeness scores an mqnet reads; both empty for a strategy that is not one."""
    plugin = results.plugin(strategy)
    if plugin.name != "mqnet":
        return "", ""
    scores = STRATEGY.make(plugin.name, plugin.options).scores
    kinds = {
        kind: [score.name for score in scores if score.entry.kind == kind] for kind in ("purity", "informativeness")
    }
    return " ".join(kinds["purity"]), " ".join(kinds["informativeness"])
