"""The paper beside what was measured, contests and readings, from results made by hand; entries at every scale."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mqnet.errors import ConfigError, InputError
from mqnet.experiment.contests import contests, reading
from mqnet.experiment.finished import standing
from mqnet.experiment.paper.compare import beside, final_accuracy, only_paper
from mqnet.experiment.paper.entries import entry
from mqnet.experiment.paper.reported import blocks
from mqnet.experiment.paper.scales import Changes, Scaled, scaled
from mqnet.experiment.results import Results, Row
from mqnet.experiment.simulate import RoundResult
from mqnet.experiment.stored import cell_folder
from tools import ROOT

SEEDS = 5


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("features")
    for name, n in (("train", 300), ("test", 60)):
        np.save(folder / f"cifar10_{name}.npy", np.random.default_rng(0).normal(size=(n, 3)).astype(np.float16))
        np.save(folder / f"cifar10_{name}_labels.npy", np.arange(n) % 10)
    np.save(folder / "places_ood.npy", np.ones((50, 3), dtype=np.float16))
    return folder


def at(features: Path, name: str, **changes: object) -> Scaled:
    return scaled(entry(name), "embeddings", features, Path("none"), Changes(**changes))


def row(label: str, share: float, seed: int, r: int, accuracy: float, cost: float = 1.0) -> Row:
    result = RoundResult(r, accuracy, 10.0 * r, 8, 2, 0.9, 0.75 if "CSI" in label else math.nan, 0.5, 1, 1, 1, 1)
    return Row("cifar10, pre-trained", label, share, seed, result, f"{label}{share}{seed}{cost}", cost)


def test_two_rows_for_every_strategy_with_marks_where_the_paper_slips(features: Path) -> None:
    ends = {"mqnet": 0.90, "confidence": 0.80, "similar": 0.75, "random": 0.70, "oracle-purity": 0.95}
    results = Results(
        row(label, share, seed, r, accuracy + 0.01 * (seed - 2) + (0.0 if r == 2 else -0.2))
        for label, accuracy in ends.items() for share in (0.1, 0.6) for seed in range(SEEDS) for r in (1, 2)
    )  # fmt: skip
    block = blocks("table1")[0]
    table = beside(at(features, "table1"), block, results)
    rows = {(name, who): numbers for name, who, *numbers in table.rows}
    assert table.columns == ("strategy", "", "10% OOD", "20% OOD", "40% OOD", "60% OOD")
    # seeds lie 0.01 apart: deviation of 1..5 times 0.01
    assert rows["mqnet", "here"] == ["90.00 ± 1.58", "", "", "90.00 ± 1.58"]
    assert rows["MQ-Net", "paper"][0] == "93.10 ± 0.40"
    assert rows["SIMILAR", "paper"][3] == "87.38 ± 0.73 1)"
    assert rows["oracle-purity", "here"][0] == "95.00 ± 1.58"
    assert rows["badge", "here"] == ["", "", "", ""]  # has not run
    # over confidence (the oracle is no rival, random is one), and over similar (the least but random)
    assert rows["mqnet over the second best, % of it", "here"][0] == "+12.50"
    assert rows["mqnet over the least but random, % of it", "here"][0] == "+20.00"
    assert rows["MQ-Net over the second best, % of it", "paper"][0] == "0.32 2)"
    assert [note[:2] for note in table.notes] == ["1)", "2)"]
    assert "it is 0.29" in table.notes[1]
    # our line stands right under the paper's
    names = [name for name, *_ in table.rows]
    assert names.index("mqnet") == names.index("MQ-Net") + 1
    assert table.rules == tuple(sorted(table.rules))


def test_rounds_and_costs_are_columns_where_the_paper_has_them(features: Path) -> None:
    rounds = Results(row(label, 0.4, s, r, 0.8) for label in ("LL-CSI", "mqnet") for s in (0, 1) for r in range(1, 5))
    table = beside(at(features, "auroc"), blocks("auroc")[0], rounds)
    cells = {(name, who): numbers for name, who, *numbers in table.rows}
    assert cells["CSI", "paper"] == ["0.745", "0.772", "0.814", "0.849", "0.870"]
    assert cells["LL-CSI", "here"] == ["0.750", "0.750", "", "", ""]  # rounds 6 to 10 did not run
    assert cells["mqnet", "here"] == [""] * 5  # without a purity score there is no number
    costs = Results(row("similar", 0.4, s, 1, 0.8 + 0.01 * c, c) for s in (0, 1) for c in (0.5, 4.0))
    table = beside(at(features, "ood-cost"), blocks("ood-cost")[0], costs)
    cells = {(name, who): numbers for name, who, *numbers in table.rows}
    assert cells["similar", "here"] == ["80.50 ± 0.00", "", "", "84.00 ± 0.00"]
    assert cells["SIMILAR", "paper"] == ["91.05 1)", "88.69 2)", "87.95", "86.52"]


def test_the_papers_own_table_and_ours_alone(features: Path) -> None:
    table = only_paper(blocks("table1")[2])
    assert table.rows[-2] == ("MQ-Net over the second best, % of it", "0.8", "1.35 1)", "0.62", "2.4")
    assert "it is 0.83" in table.notes[0]
    results = Results([row("ll", 0.1, 0, 1, 0.5), row("ll", 0.3, 0, 1, 0.625)])
    assert final_accuracy(at(features, "figure1"), results).rows == (("ll", "50.00", "62.50"),)


def test_contests_are_paired_tests_corrected_by_holm() -> None:
    noise = np.array([0.010, -0.010, 0.004, -0.004, 0.0])

    def made(label: str, lead: float, spread: float) -> list[Row]:
        return [row(label, 0.4, s, 1, 0.8 + 0.05 * s - lead + spread * noise[s]) for s in range(SEEDS)]

    rows = [r for label, lead, spread in (
        ("mqnet", 0.0, 0.0), ("clearly below", 0.05, 1.0), ("clearly above", -0.05, 1.0), ("alike", 0.0, 1.0),
        # a lead of 2.9 standard errors: p = 0.044 alone, not after Holm's correction over four
        ("doubtful", 2.9 * float(noise.std(ddof=1)) / math.sqrt(SEEDS), 1.0), ("oracle-purity", -0.1, 1.0),
    ) for r in made(label, lead, spread)]  # fmt: skip
    found = {one.other: one.outcome for one in contests(Results(rows), "mqnet")}
    assert found == {"clearly below": "wins", "clearly above": "loses", "alike": "ties", "doubtful": "ties"}
    alone = contests(Results(r for r in rows if r.strategy in ("mqnet", "doubtful")), "mqnet")
    assert [one.outcome for one in alone] == ["wins"]
    said = reading(contests(Results(rows), "mqnet"), "mqnet")
    assert said.startswith("In final accuracy, over 5 paired seeds")
    assert "**wins** 1 of 4 comparisons (against clearly below), **ties** 2, and **loses** 1 of 4" in said


def test_few_seeds_are_said() -> None:
    one = Results([row("mqnet", 0.4, 0, 1, 0.9), row("random", 0.4, 0, 1, 0.5)])
    assert contests(one, "mqnet")[0].outcome == "ties"
    assert reading(contests(one, "mqnet"), "mqnet").startswith("One seed")
    uneven = [row("mqnet", s, seed, 1, 0.9) for s in (0.1, 0.4) for seed in range(4)]
    uneven += [row("random", 0.1, seed, 1, 0.5 + 0.1 * seed) for seed in range(4)]
    uneven += [row("random", 0.4, seed, 1, 0.5 + 0.1 * seed) for seed in range(2)]
    assert "over 2 to 4 paired seeds" in reading(contests(Results(uneven), "mqnet"), "mqnet")
    assert reading([], "mqnet") == "mqnet did not run beside another strategy here."


# -- scales ------------------------------------------------------------------------------------------------------------


def test_frozen_features_are_called_pre_trained_everywhere(features: Path) -> None:
    made = at(features, "cross", seeds=(3, 4), rounds=2, budget=7.0, pool_size=40)
    config = made.config
    assert made.label.startswith("PRE-TRAINED")
    assert "pre-trained" in config.scenario.label
    assert (config.scenario.kind, config.scenario.pool_size, config.grid.seeds) == ("cross", 40, (3, 4))
    assert (config.campaign.rounds, config.campaign.budget) == (2, 7.0)
    usual = at(features, "longer-rounds").config
    assert (usual.campaign.rounds, usual.campaign.budget, usual.scenario.pool_size) == (30, 100.0, 20_000)
    assert [part.campaign.cost_ood for part in at(features, "ood-cost").config.parts()] == [0.5, 1.0, 2.0, 4.0]


def test_image_recipes_lend_their_data_model_and_size(tmp_path: Path) -> None:
    recipes = ROOT / "recipes"
    made = scaled(entry("table1"), "laptop", tmp_path, recipes, Changes())
    config = made.config
    assert not made.pretrained
    assert config.model.name.startswith("resnet")
    assert config.scenario.ood_share == (0.2, 0.6)  # those of the entry that the recipe has too
    assert scaled(entry("auroc"), "laptop", tmp_path, recipes, Changes()).config.scenario.ood_share == (0.4,)
    longer = scaled(entry("longer-rounds"), "laptop", tmp_path, recipes, Changes()).config
    assert longer.campaign.rounds == 3 * config.campaign.rounds
    assert config.scenario.root == tmp_path.resolve()
    papers = scaled(entry("cross"), "paper", tmp_path, recipes, Changes()).config
    assert (papers.campaign.rounds, papers.campaign.budget, papers.scenario.kind) == (10, 1000, "cross")
    assert papers.scenario.ood_share == (0.1, 0.2, 0.4, 0.6)
    assert len(papers.grid.strategies) == 10


def test_missing_data_and_recipes_say_where_they_belong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--scale laptop needs --data DIR"):
        scaled(entry("table1"), "laptop", None, ROOT / "recipes", Changes())
    with pytest.raises(InputError, match=r"the data folder '.*nowhere' does not exist"):
        scaled(entry("table1"), "paper", tmp_path / "nowhere", ROOT / "recipes", Changes())
    (tmp_path / "laptop").mkdir()
    (tmp_path / "laptop" / "split-cifar10.toml").write_text("[scenario")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        scaled(entry("table1"), "laptop", tmp_path, tmp_path, Changes())
    with pytest.raises(InputError, match=r"has no cifar10_train\.npy"):
        scaled(entry("table1"), "embeddings", tmp_path, tmp_path, Changes())


def test_what_finished_and_what_failed_is_read_from_the_folders(features: Path, tmp_path: Path) -> None:
    from mqnet.experiment.cells import grid

    cells = grid(at(features, "auroc", seeds=(0,), pool_size=60, budget=5.0).config)
    assert standing(tmp_path, cells) == standing(tmp_path, [*cells, *cells])
    for cell, files in zip(cells, (["rounds.json"], ["rounds.json", "error.txt"], ["error.txt"]), strict=False):
        cell_folder(tmp_path, cell).mkdir(parents=True)
        for name in files:
            text = f"{cell.title}\n\nTraceback\nMemoryError: no room\n\nstrategy: {{}}\nseed: 0\n"
            (cell_folder(tmp_path, cell) / name).write_text(text)
    found = standing(tmp_path, cells)
    assert (found.n_cells, found.n_finished, found.n_missing) == (4, 2, 1)
    assert found.failed == ((cells[2].title, "MemoryError: no room"),)
