"""An experiment's configuration: a TOML file parsed once into frozen objects."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from mqnet.data.scenarios import n_known_classes
from mqnet.errors import ConfigError, nearest_name
from mqnet.models.contrastive.config import CoderConfig
from mqnet.types import Budget, CampaignConfig, Costs, Plugin


class Section(BaseModel):
    """A part of a configuration: frozen, and without keys nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value if isinstance(value, tuple) else (value,)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("the same value stands in it twice")
    return values


Share = Annotated[float, Field(ge=0, lt=1)]
Shares = Annotated[tuple[Share, ...], BeforeValidator(_as_tuple), AfterValidator(_distinct), Field(min_length=1)]
Seeds = Annotated[tuple[int, ...], AfterValidator(_distinct), Field(min_length=1)]


PATH_KEYS = ("root", "train", "train_labels", "test", "test_labels", "table", "ood")
DATA_KEYS = (
    *PATH_KEYS, "label_column", "split_column", "download", "checksum", "size", "class_seed", "test_share", "split_seed"
)  # fmt: skip


class ScenarioSection(Section):
    """[scenario]: where the items come from, which classes are known, how much junk there is."""

    kind: Literal["split", "cross", "mismatch"] = "split"
    dataset: str = "digits"
    name: str | None = None
    root: Path | None = None
    download: bool | None = None
    checksum: str | None = None
    size: int | None = Field(default=None, ge=1)
    class_seed: int | None = None
    test_share: float | None = None
    split_seed: int | None = None
    train: Path | None = None
    train_labels: Path | None = None
    test: Path | None = None
    test_labels: Path | None = None
    table: Path | None = None
    label_column: str | None = None
    split_column: str | None = None
    ood: Path | tuple[Path, ...] | None = None
    known_classes: int | None = Field(default=None, ge=1)
    known_class_share: float | None = Field(default=None, gt=0, le=1)
    ood_share: Shares = (0.4,)
    ood_classes: int | None = Field(default=None, ge=1)
    initial_share: float = Field(default=0.01, gt=0, lt=1)
    pool_size: int | None = Field(default=None, ge=1)

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.name or f"{self.kind}-{self.dataset}"

    @property
    def draws_classes(self) -> bool:
        """Does every seed know other classes?"""
        return self.kind != "cross"

    def shares(self, n_classes: int) -> tuple[float, ...]:
        """The OOD shares of its cells; where whole classes are junk, their share of the classes in the pool."""
        if self.kind == "cross" or (self.kind == "split" and self.ood_classes is None):
            return self.ood_share
        known = n_known_classes(self.kind, n_classes, self.known_classes, self.known_class_share)
        junk = self.ood_classes if self.kind == "split" and self.ood_classes is not None else n_classes - known
        return (round(junk / (junk + known), 6),)

    def dataset_options(self) -> dict[str, object]:
        """The options the data set is opened with."""
        return {name: getattr(self, name) for name in DATA_KEYS if getattr(self, name) is not None}


class CampaignSection(Section):
    """[campaign]: rounds, budgets, costs, and the annotator's mistakes."""

    rounds: int = Field(default=10, ge=1)
    budget: float = 100.0
    total_budget: float | None = None
    cost_known: float = 1.0
    cost_ood: float = 1.0
    cost_skip: float = 0.0
    confuses_known: float = Field(default=0.0, ge=0, le=1)
    misses_ood: float = Field(default=0.0, ge=0, le=1)


class ModelSection(BaseModel):
    """[model]: the target model and its options."""

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str = "head"

    def plugin(self) -> Plugin:
        """The model as a plug-in with options."""
        return Plugin(self.name, dict(self.model_extra or {}))


StrategyChoice = str | dict[str, Any]


class GridSection(Section):
    """[grid]: the strategies to compare and the seeds to repeat them with."""

    strategies: tuple[StrategyChoice, ...] = Field(min_length=1)
    seeds: Seeds = (0, 1, 2, 3, 4)


class ExperimentConfig(Section):
    """A whole experiment."""

    scenario: ScenarioSection
    """The only one, or the first of several."""
    scenarios: tuple[ScenarioSection, ...] = ()
    """All of them, where there are several."""
    campaign: CampaignSection = CampaignSection()
    ood_costs: Annotated[tuple[float, ...], AfterValidator(_distinct)] = ()
    """Every cost of an OOD label, where there are several; `campaign.cost_ood` is the first."""
    model: ModelSection = ModelSection()
    coder: CoderConfig = CoderConfig()
    grid: GridSection
    plugins: tuple[Path, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _spread(cls, raw: Any) -> Any:
        """`[[scenarios]]` in place of `[scenario]`, and a list of costs in place of one."""
        if not isinstance(raw, dict):
            return raw
        table: dict[str, Any] = dict(raw)
        several = table.get("scenarios")
        first = several[0] if isinstance(several, list | tuple) and several else table.get("scenario")
        if first is not None and table.setdefault("scenario", first) != first:
            raise ValueError("give either [scenario] or [[scenarios]], not both")
        campaign = table.get("campaign")
        if isinstance(campaign, dict) and isinstance(campaign.get("cost_ood"), list | tuple):
            costs = list(campaign["cost_ood"])
            if not costs:
                raise ValueError("campaign.cost_ood is an empty list: a label costs something")
            table["campaign"] = {**campaign, "cost_ood": costs[0]}
            if len(costs) > 1:
                table["ood_costs"] = costs
        return table

    @model_validator(mode="after")
    def _agrees(self) -> ExperimentConfig:
        labels = [section.label for section in self.scenarios]
        if len(set(labels)) < len(labels):
            raise ValueError(f"two scenarios share a name ({', '.join(labels)}): give each a `name`")
        if self.ood_costs and self.ood_costs[0] != self.campaign.cost_ood:
            raise ValueError("give the costs as `cost_ood = [...]` in [campaign] alone")
        return self

    @property
    def all_scenarios(self) -> tuple[ScenarioSection, ...]:
        """Every scenario of the grid."""
        return self.scenarios or (self.scenario,)

    def parts(self) -> list[ExperimentConfig]:
        """The same grid for one scenario and one cost at a time, in the grid's order."""
        costs = self.ood_costs or (self.campaign.cost_ood,)
        return [
            self.model_copy(
                update={
                    "scenario": section, "scenarios": (), "ood_costs": (),
                    "campaign": self.campaign.model_copy(update={"cost_ood": cost}),
                }
            )
            for section in self.all_scenarios
            for cost in costs
        ]  # fmt: skip

    def campaign_config(self, classes: tuple[str, ...], strategy: Plugin, seed: int) -> CampaignConfig:
        """One cell's campaign."""
        c = self.campaign
        return CampaignConfig(
            classes=classes,
            budget=Budget(c.budget, c.total_budget),
            costs=Costs(c.cost_known, c.cost_ood, c.cost_skip),
            rounds=c.rounds,
            strategy=strategy,
            model=self.model.plugin(),
            seed=seed,
        )


def load_config(path: Path, data: Path | None = None) -> ExperimentConfig:
    """The experiment of a TOML file; its paths are relative to the file, those of data to `data` where it is given."""
    if not path.is_file():
        raise ConfigError(f"the configuration '{path}' does not exist.")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{path}' is not valid TOML: {error}") from error
    return parse_config(raw, base=path.parent, data=data, place=str(path))


def parse_config(
    raw: dict[str, Any], *, base: Path = Path(), data: Path | None = None, place: str = "the configuration"
) -> ExperimentConfig:
    """The experiment of a parsed table; the first mistake is an error that names the key."""
    _refuse_unused_shares(raw, place)
    try:
        config = ExperimentConfig.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{place}: {_explain(error)}") from error
    home = base if data is None else data
    placed = [section.model_copy(update=_placed(section, home)) for section in config.all_scenarios]
    return config.model_copy(
        update={
            "scenario": placed[0],
            "scenarios": tuple(placed) if config.scenarios else (),
            "plugins": tuple((base / plugin).resolve() for plugin in config.plugins),
        }
    )


def _placed(section: ScenarioSection, home: Path) -> dict[str, Path | tuple[Path, ...]]:
    return {
        name: tuple((home / one).resolve() for one in value) if isinstance(value, tuple) else (home / value).resolve()
        for name in PATH_KEYS
        if (value := getattr(section, name)) is not None
    }


def _refuse_unused_shares(raw: Mapping[str, Any], place: str) -> None:
    """A share that no pool would have must not look as if it had one."""
    several = raw.get("scenarios")
    for section in [raw.get("scenario"), *(several if isinstance(several, list) else ())]:
        if not isinstance(section, dict) or "ood_share" not in section:
            continue
        why = "mismatch" if section.get("kind") == "mismatch" else "ood_classes" if "ood_classes" in section else None
        if why is not None:
            raise ConfigError(
                f"{place}: 'scenario.ood_share' has no say with {why}: whole classes are the junk, and their sizes "
                "make the share. Drop it."
            )


_SECTIONS: dict[str, type[BaseModel]] = {
    "scenario": ScenarioSection,
    "scenarios": ScenarioSection,
    "campaign": CampaignSection,
    "model": ModelSection,
    "coder": CoderConfig,
    "grid": GridSection,
}


def _explain(error: ValidationError) -> str:
    found = error.errors()
    # the first of several scenarios is read twice: what is wrong in it is told where it stands
    first = next((one for one in found if one["loc"][:1] == ("scenarios",)), found[0])
    if not first["loc"]:
        return f"{first['msg'].removeprefix('Value error, ')}."
    keys = [str(part) for part in first["loc"]]
    place = ".".join(keys)
    if first["type"] == "extra_forbidden":
        section = _SECTIONS.get(keys[0]) if len(keys) > 1 else ExperimentConfig
        fields = section.model_fields if section is not None else {}
        return f"unknown key '{place}'.{nearest_name(keys[-1], fields)}"
    if first["type"] == "missing":
        return f"'{place}' is missing."
    return f"'{place}' is {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}."
