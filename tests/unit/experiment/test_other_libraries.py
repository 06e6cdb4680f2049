"""The adapter for scikit-activeml: where both rank by the same score, both buy the same items."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqnet.experiment.campaigns import cell_learner, cell_scenario, truth_of
from mqnet.experiment.cells import grid
from mqnet.experiment.config import parse_config
from mqnet.experiment.simulate import run_campaign
from mqnet.oracles.simulated import SimulatedOracle
from mqnet.registry import load_plugin

ADAPTER = Path(__file__).parents[3] / "benchmarks" / "plugins" / "skactiveml_strategies.py"


def _bought(folder: Path, strategy: str) -> list[tuple[int, str]]:
    load_plugin(ADAPTER)
    raw = {
        "scenario": {"known_classes": 4, "pool_size": 200},
        "campaign": {"rounds": 2, "budget": 10},
        "model": {"n_steps": 30},
        "grid": {"strategies": [strategy], "seeds": [3]},
    }
    (cell,) = grid(parse_config(raw))
    truth = truth_of(cell_scenario(cell))
    with cell_learner(folder, cell) as learner:
        run_campaign(learner, SimulatedOracle(truth), truth)
        return [(line.round, line.item) for line in learner.ledger]


@pytest.mark.parametrize("name", ["confidence", "margin", "entropy"])
def test_the_same_score_buys_the_same_items(tmp_path: Path, name: str) -> None:
    ours, theirs = _bought(tmp_path, name), _bought(tmp_path, f"ska-{name}")
    assert {round_ for round_, _ in ours} == {0, 1, 2}
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("name", ["random", "badge", "coreset", "typiclust", "committee"])
def test_the_others_start_alike_and_spend_the_same(tmp_path: Path, name: str) -> None:
    ours, theirs = _bought(tmp_path, "random"), _bought(tmp_path, f"ska-{name}")
    assert ours[:10] == theirs[:10]
    assert len(theirs) == len({item for _, item in theirs}) == len(ours)
