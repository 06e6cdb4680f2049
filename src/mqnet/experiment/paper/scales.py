"""How large: the grid of an entry on frozen features (`embeddings`), on small or on the paper's image recipes."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqnet.errors import ConfigError, InputError, nearest_name
from mqnet.experiment.config import ExperimentConfig, parse_config
from mqnet.experiment.paper.entries import Entry

PRETRAINED = (
    "PRE-TRAINED: frozen features of a network trained on ImageNet, a small head trained on top. The paper used no "
    "pre-trained networks, so accuracies are not comparable with its own; who leads, and by how much, may be."
)
FILES = {
    "split": ("cifar10_train.npy", "cifar10_train_labels.npy", "cifar10_test.npy", "cifar10_test_labels.npy"),
    "cross": ("places_ood.npy",),
}
SCALES = ("embeddings", "laptop", "paper")
PAPER_ROUNDS = 10


@dataclass(frozen=True)
class Changes:
    """What a user may change of an entry's grid; None leaves it as it is."""

    seeds: tuple[int, ...] | None = None
    rounds: int | None = None
    budget: float | None = None
    pool_size: int | None = None


@dataclass(frozen=True)
class Scaled:
    """An entry at a scale: its experiment, the paper's data set it stands beside, a label."""

    entry: Entry
    scale: str
    label: str
    dataset: str
    config: ExperimentConfig

    @property
    def pretrained(self) -> bool:
        """Does the target model stand on a pre-trained network?"""
        return self.scale == "embeddings"


def scaled(entry: Entry, scale: str, data: Path | None, recipes: Path, changes: Changes) -> Scaled:
    """The experiment of an entry at a scale. Missing data or recipes are an error that says where they belong."""
    if scale not in SCALES:
        raise ConfigError(f"'{scale}' is no scale.{nearest_name(scale, SCALES)}")
    if scale == "embeddings":
        base, label = _embeddings(entry, data), PRETRAINED
    else:
        base, label = _recipe(entry, scale, data, recipes)
    scenario, campaign = base["scenario"], base["campaign"]
    if changes.pool_size is not None:
        scenario["pool_size"] = changes.pool_size
    if changes.rounds is not None:
        campaign["rounds"] = changes.rounds
    if changes.budget is not None:
        campaign["budget"] = changes.budget
    seeds = list(changes.seeds if changes.seeds is not None else base["seeds"])
    first, *others = entry.costs_ood
    campaign["cost_ood"] = [first, *others] if others else first
    config = parse_config(
        {
            "scenario": scenario,
            "campaign": campaign,
            "grid": {"strategies": list(entry.strategies), "seeds": seeds},
            **base["more"],
        },
        data=data,
        place=f"mqnet paper {entry.name} --scale {scale}",
    )
    return Scaled(entry, scale, label, "Cross-CIFAR-10" if entry.kind == "cross" else "CIFAR-10 (4:6)", config)


def _embeddings(entry: Entry, data: Path | None) -> dict[str, Any]:
    if data is None:
        raise ConfigError(
            "--scale embeddings needs --data DIR: a folder of frozen CIFAR-10 features with "
            f"{', '.join(FILES['split'])} ({FILES['cross'][0]} for `cross`)."
        )
    wanted = [*FILES["split"], *(FILES["cross"] if entry.kind == "cross" else ())]
    missing = [name for name in wanted if not (data / name).is_file()]
    if missing:
        raise InputError(f"'{data}' has no {', '.join(missing)}: --data names a folder that holds {', '.join(wanted)}.")
    train, train_labels, test, test_labels = (str((data / name).resolve()) for name in FILES["split"])
    scenario: dict[str, Any] = {
        "kind": entry.kind, "dataset": "embeddings", "train": train, "train_labels": train_labels, "test": test,
        "test_labels": test_labels,
    }  # fmt: skip
    if entry.kind == "cross":
        ood = str((data / FILES["cross"][0]).resolve())
        scenario |= {"name": "cross-cifar10, pre-trained", "pool_size": 16_000, "ood": ood}
    else:
        scenario |= {"name": "cifar10, pre-trained", "pool_size": 20_000, "known_classes": 4}
    scenario["ood_share"] = list(entry.ood_share)
    return {"scenario": scenario, "campaign": {"budget": 100.0, "rounds": entry.rounds}, "seeds": range(5), "more": {}}


def _recipe(entry: Entry, scale: str, data: Path | None, recipes: Path) -> tuple[dict[str, Any], str]:
    """The recipe's data, model and coder with the entry's strategies.

    A laptop's recipe has fewer shares, rounds and seeds than the paper: an entry keeps those of its shares that the
    recipe has too (all, if it has none of them), and takes as many times the recipe's rounds as the paper's ten.
    """
    path = recipes / scale / f"{entry.kind}-cifar10.toml"
    if not path.is_file():
        raise ConfigError(
            f"--scale {scale} reads the recipe '{path}', which does not exist; --recipes DIR names the folder."
        )
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"'{path}' is not valid TOML: {error}") from error
    if data is None:
        raise ConfigError(f"--scale {scale} needs --data DIR; the first lines of '{path}' say what must be in it.")
    if not data.is_dir():
        raise InputError(f"the data folder '{data}' does not exist; '{path}' says what must be in it.")
    scenario: dict[str, Any] = {"name": f"{entry.kind}-cifar10", **raw["scenario"]}
    both = [share for share in entry.ood_share if share in scenario.get("ood_share", entry.ood_share)]
    scenario["ood_share"] = both or list(entry.ood_share)
    campaign = dict(raw.get("campaign", {}))
    campaign["rounds"] = max(1, round(campaign.get("rounds", PAPER_ROUNDS) * entry.rounds / PAPER_ROUNDS))
    more = {name: raw[name] for name in ("model", "coder") if name in raw}
    seeds = raw.get("grid", {}).get("seeds", range(5))
    label = f"Trained from scratch on images, after the recipe {scale}/{path.name}."
    return {"scenario": scenario, "campaign": campaign, "seeds": seeds, "more": more}, label
