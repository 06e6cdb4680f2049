"""A grid's cells: one campaign each, named by a hash of everything that defines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, TypedDict

from mqnet import __version__
from mqnet.data.labelled import Dataset
from mqnet.data.scenarios import Scenario, cross, mismatch, split
from mqnet.errors import ConfigError
from mqnet.experiment.config import DATA_KEYS, ExperimentConfig, ScenarioSection
from mqnet.experiment.plugins import sources_of, used_plugins
from mqnet.loop.opening import as_plugin, make_model, make_strategy
from mqnet.loop.spaces import CODED, holds_images
from mqnet.registry import DATASET, load_plugin
from mqnet.store.ledger import sure_labels
from mqnet.types import Costs, Plugin


@dataclass(frozen=True)
class Cell:
    """One campaign of a grid."""

    config: ExperimentConfig
    strategy: Plugin
    strategy_label: str
    ood_share: float
    seed: int
    digest: str
    coded: frozenset[str] = frozenset()
    """The columns it needs that contrastive coders give."""

    @property
    def title(self) -> str:
        """A few words for people."""
        c = self.config.campaign
        cost = f" · OOD cost {c.cost_ood:g}" if c.cost_ood != c.cost_known else ""
        return (
            f"{self.strategy_label} · {self.config.scenario.label} · {self.ood_share:.0%} OOD{cost} · seed {self.seed}"
        )


def grid(config: ExperimentConfig) -> list[Cell]:
    """All cells of an experiment. Everything that can be refused is refused here, before anything is written."""
    for plugin in config.plugins:
        load_plugin(plugin)
    strategies = [labelled(choice) for choice in config.grid.strategies]
    labels = [label for _, label in strategies]
    if len(set(labels)) < len(labels):
        raise ConfigError(f"two strategies of the grid share a name: {', '.join(labels)}. Give one a `label`.")
    for section in config.all_scenarios:
        parts = [part for part in config.parts() if part.scenario == section]
        reserves = {0, *(_reserve(part, strategy) for part in parts for strategy, _ in strategies)}
        _check_scenario(section, config.grid.seeds, sorted(reserves))
    cells: list[Cell] = []
    for part in config.parts():
        data = open_dataset(part.scenario)
        coded = {label: _checked(part, data, strategy) for strategy, label in strategies}
        for share in part.scenario.shares(len(data.classes)):
            for seed in part.grid.seeds:
                for strategy, label in strategies:
                    digest = _digest(part, data, strategy, share, seed, coded[label])
                    cells.append(Cell(part, strategy, label, share, seed, digest, coded[label]))
    return cells


def _check_scenario(section: ScenarioSection, seeds: Sequence[int], reserves: Sequence[int]) -> None:
    for share in section.shares(len(open_dataset(section).classes)):
        # a draw of classes has other sizes with every seed; a cross is as large with one as with another
        for seed in seeds if section.draws_classes else seeds[:1]:
            for reserve in reserves:
                open_scenario(section, share, seed, reserve)


def _checked(config: ExperimentConfig, data: Dataset, strategy: Plugin) -> frozenset[str]:
    """The columns a strategy needs that coders give; what it needs and nothing gives is an error."""
    campaign = config.campaign_config(data.classes, strategy, 0)
    campaign.check()
    needs, gives = make_strategy(campaign, True).needs, make_model(campaign).provides
    coded = needs & CODED if holds_images(data.train.pool) else frozenset[str]()
    if needs - gives - coded:
        raise ConfigError(
            f"strategy '{strategy.name}' needs {', '.join(sorted(needs - gives - coded))}, which the model "
            f"'{config.model.name}' does not give (it gives {', '.join(sorted(gives))})."
        )
    return coded


def labelled(choice: str | Mapping[str, Any]) -> tuple[Plugin, str]:
    """A strategy as the grid names it, and its label: its own, or one that shows its options."""
    if isinstance(choice, str):
        return Plugin(choice), choice
    options = dict(choice)
    label = options.pop("label", None)
    plugin = as_plugin(options)
    if label is not None:
        return plugin, str(label)
    shown = ", ".join(f"{name}={value}" for name, value in plugin.options.items())
    return plugin, f"{plugin.name}({shown})" if shown else plugin.name


def _digest(
    config: ExperimentConfig, data: Dataset, strategy: Plugin, share: float, seed: int, coded: frozenset[str]
) -> str:
    defining: dict[str, object] = {
        "version": __version__,
        "data": data.fingerprint(),
        "scenario": _pool_of(config.scenario, share),
        "campaign": config.campaign.model_dump(),
        "model": asdict(config.model.plugin()),
        "strategy": asdict(strategy),
        "plugins": sources_of(used_plugins(config, strategy), config.plugins),
        "seed": seed,
    }
    if coded:  # what a cell does not use does not name it: another coder repeats only the cells that look through one
        defining["coder"] = config.coder.model_dump()
    text = json.dumps(defining, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def _pool_of(scenario: ScenarioSection, share: float) -> list[object]:
    classes: list[object] = [
        scenario.kind,
        scenario.known_classes,
        scenario.known_class_share,
        scenario.pool_size,
        share,
    ]
    if scenario.kind == "mismatch":
        return [*classes, scenario.initial_share]
    return [*classes, f"{scenario.ood_classes} whole classes"] if scenario.ood_classes is not None else classes


def open_dataset(section: ScenarioSection) -> Dataset:
    """The scenario's data set; every value in it has been checked."""
    return _open_dataset(section.model_dump_json(include={"dataset", *DATA_KEYS}))


def open_scenario(section: ScenarioSection, ood_share: float, seed: int, reserve: int = 0) -> Scenario:
    """The pool, truth and test items of one OOD share and seed: the same for every strategy.

    `reserve` items outside the pool are labelled for strategies that learn from an independent validation set; where
    the data leave too few beside it, the pool of these strategies is smaller.
    """
    return _open_scenario(section.model_dump_json(), ood_share, seed, reserve)


def reserve_for(cell: Cell) -> int:
    """How many items a cell's strategy wants beside the pool: as many as a query holds, or none."""
    return _reserve(cell.config, cell.strategy)


def _reserve(config: ExperimentConfig, strategy: Plugin) -> int:
    if strategy.options.get("validation") != "random":
        return 0
    return sure_labels(config.campaign.budget, Costs(config.campaign.cost_known, config.campaign.cost_ood))


@lru_cache(maxsize=2)  # keyed by the section's text: the cells of a grid share data sets and pools
def _open_dataset(text: str) -> Dataset:
    section = ScenarioSection.model_validate_json(text)
    entry = DATASET.get(section.dataset)
    options = section.dataset_options()
    entry.check_options(options)
    data: Dataset = entry.target(**options)
    data.fingerprint()
    return data


class _Known(TypedDict):
    known_classes: int | None
    known_class_share: float | None


@lru_cache(maxsize=4)
def _open_scenario(text: str, ood_share: float, seed: int, reserve: int) -> Scenario:
    section = ScenarioSection.model_validate_json(text)
    data = open_dataset(section)
    known = _Known(known_classes=section.known_classes, known_class_share=section.known_class_share)
    if section.kind == "cross":
        if any(value is not None for value in (*known.values(), section.ood_classes)):
            raise ConfigError(
                "scenario 'cross' knows all classes: drop known_classes, known_class_share and ood_classes."
            )
        if reserve:
            raise ConfigError(
                "an independent validation set (`validation = 'random'`) exists beside 'split' and 'mismatch' only."
            )
        return cross(data, seed=seed, ood_share=ood_share, pool_size=section.pool_size)
    if section.kind == "mismatch":
        if section.ood_classes is not None:
            raise ConfigError("scenario 'mismatch' takes all other classes as junk: drop ood_classes.")
        return mismatch(
            data,
            seed=seed,
            **known,
            initial_share=section.initial_share,
            pool_size=section.pool_size,
            reserve=reserve,
        )
    return split(
        data,
        seed=seed,
        ood_share=ood_share,
        **known,
        ood_classes=section.ood_classes,
        pool_size=section.pool_size,
        reserve=reserve,
    )
