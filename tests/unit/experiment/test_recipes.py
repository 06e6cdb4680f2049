"""The recipes: the paper's numbers in one folder, a laptop's hour in the other; all are sound configurations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mqnet.experiment.config import ExperimentConfig, load_config
from mqnet.loop.opening import as_plugin, make_strategy
from mqnet.models.contrastive.config import CoderConfig
from mqnet.registry import DATASET, MODEL
from mqnet.types import Plugin

RECIPES = Path(__file__).parents[3] / "recipes"
PAPER, LAPTOP = (sorted((RECIPES / folder).glob("*.toml")) for folder in ("paper", "laptop"))

# METHOD of the paper: what is known, the budget of a round, the steps of the target model
SETTINGS = {
    "split-cifar10": (4, 500, 20_000),
    "split-cifar100": (40, 500, 20_000),
    "split-imagenet50": (50, 1_000, 30_000),
    "cross-cifar10": (None, 1_000, 20_000),
    "cross-cifar100": (None, 2_000, 20_000),
    "cross-imagenet50": (None, 1_000, 30_000),
}


def strategies(config: ExperimentConfig) -> list[Plugin]:
    found = []
    for choice in config.grid.strategies:
        options = {"name": choice} if isinstance(choice, str) else {k: v for k, v in choice.items() if k != "label"}
        found.append(as_plugin(options))
    return found


def test_both_folders_ask_the_same_questions() -> None:
    assert [path.stem for path in PAPER] == [path.stem for path in LAPTOP] == sorted(SETTINGS)


@pytest.mark.parametrize("path", [*PAPER, *LAPTOP], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recipe_is_a_configuration_whose_parts_exist(path: Path) -> None:
    config = load_config(path, Path("elsewhere"))
    assert config.scenario.kind == path.stem.split("-")[0]
    DATASET.get(config.scenario.dataset).check_options(config.scenario.dataset_options())
    MODEL.get(config.model.name).check_options(config.model.plugin().options)
    for strategy in strategies(config):
        make_strategy(config.campaign_config(("a", "b"), strategy, 0), simulated=True)
    names = [plugin.name for plugin in strategies(config)]
    assert {"random", "oracle-purity", "ccal", "ll", "badge", "mqnet"} <= set(names)
    assert any(plugin.options.get("purity") == "csi" for plugin in strategies(config))
    # data lie where the user says, and only there
    places = [config.scenario.root, config.scenario.ood]
    for place in [one for some in places if some for one in (some if isinstance(some, tuple) else (some,))]:
        assert place == Path("elsewhere").resolve() or place.parent == Path("elsewhere").resolve()
    command = re.search(r"^# (mqnet run .*)$", path.read_text(), re.MULTILINE)
    assert command is not None
    assert command[1].split()[2] == str(path.relative_to(RECIPES.parent))


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_the_papers_settings(path: Path) -> None:
    config = load_config(path)
    known, budget, n_steps = SETTINGS[path.stem]
    assert config.scenario.known_classes == known
    assert config.scenario.ood_share == (0.1, 0.2, 0.4, 0.6)
    assert config.scenario.pool_size is None
    assert (config.campaign.rounds, config.campaign.budget) == (10, budget)
    assert (config.campaign.cost_known, config.campaign.cost_ood) == (1.0, 1.0)
    assert config.model.name == "resnet18"
    expected = {"n_steps": n_steps, "batch_size": 64, "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
    assert config.model.plugin().options == expected
    assert (config.coder.net, config.coder.epochs, config.coder.batch_size) == ("resnet18", 1000, 32)
    assert config.coder.temperature == 0.5
    assert len(config.grid.seeds) == 5
    assert any(plugin.options.get("variant") == "paper" for plugin in strategies(config))


@pytest.mark.parametrize("path", LAPTOP, ids=lambda path: path.stem)
def test_a_laptops_size(path: Path) -> None:
    config = load_config(path)
    assert config.scenario.known_classes == SETTINGS[path.stem][0]
    assert len(config.scenario.ood_share) == len(config.grid.seeds) == 2
    assert config.model.name == config.coder.net == "resnet8"
    assert config.model.plugin().options["n_steps"] >= 500
    assert config.coder.epochs >= 32
    # an hour on two cores: seconds of one core as measured (docs/findings-images.md)
    n_pools = len(config.scenario.ood_share) * len(config.grid.seeds)
    pool = config.scenario.pool_size or 0
    pictures = sum(config.coder.n_steps(pool) * CoderConfig().batch_size * n for n in (8, 2)) * n_pools
    steps = n_pools * len(config.grid.strategies) * config.campaign.rounds * config.model.plugin().options["n_steps"]
    assert pictures / 2_000 + 64 * steps / 1_800 < 2 * 3600
