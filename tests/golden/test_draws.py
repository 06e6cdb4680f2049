"""What a seed means must never change: results of two machines and two years are compared by it."""

from __future__ import annotations

import pytest

from mqnet.experiment.cells import grid, open_scenario
from mqnet.experiment.config import ExperimentConfig, GridSection, ScenarioSection
from mqnet.loop.rounds import initial_ranking

CLASSES = {0: "0 2 5 6", 1: "0 1 5 8", 2: "1 6 7 9"}
FIRST = {0: "0290 0462 1094 0321", 1: "0022 0323 0469 0201", 2: "1135 0365 0073 0259"}


def _config() -> ExperimentConfig:
    section = ScenarioSection(dataset="digits", known_classes=4, ood_share=(0.4,))
    return ExperimentConfig(scenario=section, grid=GridSection(strategies=("random",), seeds=tuple(CLASSES)))


@pytest.mark.parametrize("seed", CLASSES)
def test_known_classes_and_the_initial_sample_of_a_seed(seed: int) -> None:
    config = _config()
    scenario = open_scenario(config.scenario, 0.4, seed)
    campaign = config.campaign_config(scenario.classes, grid(config)[0].strategy, seed)
    first = [item for item, _ in initial_ranking(scenario.pool, campaign, 4)]
    assert " ".join(scenario.classes) == CLASSES[seed]
    assert " ".join(first) == FIRST[seed]
