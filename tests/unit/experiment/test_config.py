"""Configurations: every mistake names its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqnet.errors import ConfigError, PluginError
from mqnet.experiment.cells import grid, reserve_for
from mqnet.experiment.config import load_config, parse_config

GOOD = {"scenario": {"known_classes": 4}, "grid": {"strategies": ["random"]}}


def _with(table: str, /, **values: object) -> dict[str, object]:
    return {**GOOD, table: {**GOOD.get(table, {}), **values}}


def test_the_issues_example_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cifar.toml"
    path.write_text("""
        [scenario]
        kind = "split"
        dataset = "embeddings"
        train = "cifar10_train.npy"
        train_labels = "cifar10_train_labels.npy"
        test = "cifar10_test.npy"
        test_labels = "cifar10_test_labels.npy"
        known_classes = 4
        ood_share = [0.1, 0.2, 0.4, 0.6]
        pool_size = 20000
        [campaign]
        rounds = 10
        budget = 100
        cost_known = 1.0
        cost_ood = 1.0
        [grid]
        strategies = ["random", "confidence", "sum", "oracle-purity"]
        seeds = [0, 1, 2, 3, 4]
    """)
    config = load_config(path)
    assert config.scenario.train == tmp_path / "cifar10_train.npy"
    assert config.scenario.ood_share == (0.1, 0.2, 0.4, 0.6)
    assert (config.campaign.rounds, config.campaign.budget) == (10, 100.0)
    assert len(config.grid.strategies) * len(config.grid.seeds) * len(config.scenario.ood_share) == 80


@pytest.mark.parametrize(
    ("raw", "key", "meant"),
    [
        (_with("scenario", know_classes=3), "scenario.know_classes", "known_classes"),
        (_with("campaign", bugdet=3), "campaign.bugdet", "budget"),
        (_with("grid", strategy=[]), "grid.strategy", "strategies"),
        ({**GOOD, "scenaros": {}}, "scenaros", "scenarios"),
        ({"grid": GOOD["grid"], "scenarios": [{}, {"nme": "x"}]}, "scenarios.1.nme", "name"),
        ({"grid": GOOD["grid"], "scenarios": [{"nme": "x"}]}, "scenarios.0.nme", "name"),
    ],
)
def test_a_typo_names_the_nearest_key(raw: dict[str, object], key: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown key '{key}'\. Did you mean '{meant}'\? Choices: "):
        parse_config(raw)


def test_a_typo_in_a_plugins_options_names_the_nearest() -> None:
    with pytest.raises(PluginError, match=r"model 'head' has no option 'hiden'. Did you mean 'hidden'"):
        grid(parse_config(_with("model", hiden=3)))
    with pytest.raises(PluginError, match=r"has no option 'informativenes'. Did you mean 'informativeness'"):
        grid(parse_config(_with("grid", strategies=[{"name": "sum", "informativenes": "margin"}])))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (_with("campaign", rounds="many"), "'campaign.rounds' is 'many': input should be a valid integer"),
        (_with("campaign", rounds=0), "'campaign.rounds' is 0: input should be greater than or equal to 1"),
        (_with("campaign", misses_ood=1.5), "'campaign.misses_ood' is 1.5"),
        (_with("scenario", ood_share=[]), "'scenario.ood_share'"),
        (_with("scenario", ood_share=-0.1), "'scenario.ood_share.0' is -0.1"),
        (_with("scenario", ood_share=[0.4, 0.4]), "the same value stands in it twice"),
        (_with("scenario", kind="mix"), "'scenario.kind' is 'mix': input should be 'split', 'cross' or 'mismatch'"),
        (_with("scenario", train=3), "'scenario.train' is 3"),
        (_with("grid", seeds=[0, 0]), "'grid.seeds'"),
        (_with("grid", strategies=[]), "'grid.strategies'"),
        ({"scenario": {}}, "'grid' is missing"),
        ({"grid": {"strategies": ["random"]}}, "'scenario' is missing"),
        ({**GOOD, "campaign": 3}, "'campaign' is 3"),
    ],
)
def test_a_wrong_value_is_named(raw: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(raw, place="x.toml")
    assert str(caught.value).startswith("x.toml: ")
    assert message in str(caught.value)


def test_a_single_share_stands_for_a_list() -> None:
    assert parse_config(_with("scenario", ood_share=0.2)).scenario.ood_share == (0.2,)


def test_a_missing_or_broken_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = [1,")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_config(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_config(tmp_path / "latin.toml")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    raw = {**_with("scenario", train="data/a.npy", table="/abs/t.csv"), "plugins": ["mine.py"]}
    config = parse_config(raw, base=tmp_path)
    assert config.scenario.train == tmp_path / "data" / "a.npy"
    assert config.scenario.table == Path("/abs/t.csv")
    assert config.plugins == (tmp_path / "mine.py",)


def test_an_independent_validation_set_is_as_large_as_a_query_and_refused_where_there_is_none() -> None:
    strategies = ["random", {"name": "mqnet", "validation": "random"}]
    raw = {
        **_with("grid", strategies=strategies, seeds=[0]),
        "campaign": {"budget": 0.3, "cost_known": 0.1, "cost_ood": 0.1},
    }
    assert [reserve_for(cell) for cell in grid(parse_config(raw))] == [0, 3]  # 0.3 // 0.1 is 2
    raw["campaign"] = {"budget": 2000}
    with pytest.raises(ConfigError, match="independent validation set of 2000 items"):
        grid(parse_config(raw))


def test_a_cells_digest_is_what_defines_the_campaign() -> None:
    def digests(raw: dict[str, object]) -> list[str]:
        return [cell.digest for cell in grid(parse_config(raw))]

    base = digests(GOOD)
    assert digests({"grid": GOOD["grid"], "scenario": {"name": "other", "known_classes": 4}}) == base
    assert digests(_with("grid", strategies=[{"name": "random", "label": "shown as"}])) == base
    assert digests(_with("campaign", budget=100.0)) == base
    assert digests(_with("grid", seeds=[4, 0])) == [base[4], base[0]]
    changes = (
        _with("campaign", budget=99), _with("campaign", rounds=9), _with("scenario", known_classes=5),
        _with("scenario", pool_size=100), _with("model", hidden=64), _with("scenario", ood_share=0.2),
        _with("grid", strategies=["margin"]), _with("campaign", misses_ood=0.1),
    )  # fmt: skip
    found = [digests(change)[0] for change in changes]
    assert len({base[0], *found}) == len(changes) + 1


def test_labels_show_the_options() -> None:
    strategies = ["sum", {"name": "sum", "purity": "energy"}, {"name": "sum", "purity": "msp", "label": "mine"}]
    cells = grid(parse_config({**GOOD, "grid": {"strategies": strategies, "seeds": [0]}}))
    assert [cell.strategy_label for cell in cells] == ["sum", "sum(purity=energy)", "mine"]


def test_a_share_only_a_later_seed_cannot_provide_is_refused_before_anything_runs(tmp_path: Path) -> None:
    import numpy as np

    # class 0 is far larger than the others: a pool in which it is known needs more junk than there is
    labels = np.repeat(np.arange(4), [60, 10, 10, 10])
    for name in ("train", "test"):
        np.save(tmp_path / f"{name}.npy", np.zeros((90, 2), dtype=np.float32))
        np.save(tmp_path / f"{name}_labels.npy", labels)
    files = {name: f"{name}.npy" for name in ("train", "train_labels", "test", "test_labels")}
    raw = {
        "scenario": {"dataset": "embeddings", "known_classes": 1, "ood_share": 0.5, **files},
        "grid": {"strategies": ["random"], "seeds": list(range(16))},
    }
    fine = [seed for seed in range(16) if _runs({**raw, "grid": {"strategies": ["random"], "seeds": [seed]}}, tmp_path)]
    assert 0 < len(fine) < 16
    reordered = [*fine, *(seed for seed in range(16) if seed not in fine)]
    with pytest.raises(ConfigError, match="the data has 30"):
        grid(parse_config({**raw, "grid": {"strategies": ["random"], "seeds": reordered}}, base=tmp_path))


def _runs(raw: dict[str, object], base: Path) -> bool:
    try:
        return bool(grid(parse_config(raw, base=base)))
    except ConfigError:
        return False


def _digests(raw: dict[str, object], base: Path = Path()) -> dict[tuple[str, float, int, float], str]:
    out: dict[tuple[str, float, int, float], str] = {}
    for cell in grid(parse_config(raw, base=base)):
        name = f"{cell.config.scenario.label}/{cell.strategy_label}"
        out[name, cell.ood_share, cell.seed, cell.config.campaign.cost_ood] = cell.digest
    return out


def test_costs_in_a_list_are_cells_and_name_them_as_one_cost_does() -> None:
    several = _digests(_with("campaign", cost_ood=[0.5, 1, 4]))
    assert [key[3] for key in several] == [0.5] * 5 + [1.0] * 5 + [4.0] * 5
    for cost in (0.5, 1.0, 4.0):
        one = _digests(_with("campaign", cost_ood=cost))
        assert one.items() <= several.items()
    assert parse_config(_with("campaign", cost_ood=[2.0])) == parse_config(_with("campaign", cost_ood=2.0))


@pytest.mark.parametrize(
    ("costs", "message"),
    [([], "is an empty list"), ([1, 1.0], "the same value stands in it twice"), ([1, "x"], "is 'x'")],
)
def test_a_list_of_costs_is_checked(costs: list[object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(_with("campaign", cost_ood=costs))


TWO = {
    "scenarios": [
        {"name": "few", "known_classes": 2, "ood_share": [0.2, 0.4]},
        {"name": "many", "known_classes": 6, "ood_share": 0.1, "pool_size": 300},
    ],
    "grid": {"strategies": ["random", "margin"], "seeds": [0, 1]},
}


def test_several_scenarios_are_one_grid_and_keep_their_cells() -> None:
    both = _digests(TWO)
    assert len(both) == (2 + 1) * 2 * 2
    for section in TWO["scenarios"]:
        alone = _digests({"scenario": section, "grid": TWO["grid"]})
        assert alone.items() <= both.items()
    with pytest.raises(ConfigError, match=r"two scenarios share a name \(split-digits, split-digits\)"):
        parse_config({**TWO, "scenarios": [{"known_classes": 2}, {"known_classes": 3}]})
    with pytest.raises(ConfigError, match=r"either \[scenario\] or \[\[scenarios\]\]"):
        parse_config({**TWO, "scenario": {"known_classes": 2}})


def test_what_is_stored_is_read_as_it_was(tmp_path: Path) -> None:
    from mqnet.experiment.config import ExperimentConfig

    raw = {**TWO, "campaign": {"cost_ood": [1, 2]}}
    config = parse_config(raw, base=tmp_path)
    assert ExperimentConfig.model_validate_json(config.model_dump_json()) == config


def test_paths_of_every_scenario_are_placed(tmp_path: Path) -> None:
    raw = {"scenarios": [{"name": "a", "train": "a.npy"}, {"name": "b", "train": "b.npy"}], "grid": TWO["grid"]}
    config = parse_config(raw, base=tmp_path)
    assert [section.train for section in config.scenarios] == [tmp_path / "a.npy", tmp_path / "b.npy"]
    assert config.scenario == config.scenarios[0]


SCORE = """
import torch
from mqnet.registry import {kind}
@{kind}("{name}")
def score(view):
    "Nothing."
    return torch.zeros(len(view))
"""


def _plugin(folder: Path, name: str, kind: str = "purity") -> str:
    (folder / f"{name}.py").write_text(SCORE.format(kind=kind, name=name))
    return f"{name}.py"


def test_a_plugin_names_only_the_cells_that_use_it(tmp_path: Path) -> None:
    used, other = _plugin(tmp_path, "cells-used"), _plugin(tmp_path, "cells-other")
    strategies = ["random", {"name": "sum", "purity": "cells-used", "label": "mine"}]
    raw = {**GOOD, "grid": {"strategies": strategies, "seeds": [0]}}
    plain = _digests({**GOOD, "grid": {"strategies": ["random"], "seeds": [0]}})
    one = _digests({**raw, "plugins": [used]}, tmp_path)
    both = _digests({**raw, "plugins": [used, other]}, tmp_path)
    assert plain.items() <= one.items()
    assert one == both
    (tmp_path / used).write_text(SCORE.format(kind="purity", name="cells-used") + "# changed\n")
    changed = _digests({**raw, "plugins": [used, other]}, tmp_path)
    assert [key[0] for key in one if one[key] != changed[key]] == ["split-digits/mine"]


def test_a_plugin_that_names_anothers_score_carries_it_along(tmp_path: Path) -> None:
    score = _plugin(tmp_path, "cells-carried")
    (tmp_path / "user.py").write_text(
        "from mqnet.registry import PURITY, strategy\nfrom mqnet.strategies.base import Ranking\n"
        "@strategy('cells-carrier')\nclass Carrier(Ranking):\n    'Ranks by a score of another file.'\n"
        "    def score(self, view, key):\n        return PURITY.score('cells-carried')(view)\n"
    )
    raw = {**GOOD, "grid": {"strategies": ["cells-carrier", "random"], "seeds": [0]}, "plugins": ["user.py", score]}
    before = _digests(raw, tmp_path)
    (tmp_path / score).write_text((tmp_path / score).read_text() + "# changed\n")
    after = _digests(raw, tmp_path)
    assert [key[0] for key in before if before[key] != after[key]] == ["split-digits/cells-carrier"]


def test_a_file_that_registers_nothing_is_part_of_every_cell(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("import mqnet\n")
    before, after = _digests(GOOD), _digests({**GOOD, "plugins": ["silent.py"]}, tmp_path)
    assert not set(before.values()) & set(after.values())


def test_shares_of_whole_classes_are_theirs() -> None:
    def shares(**section: object) -> set[float]:
        return {cell.ood_share for cell in grid(parse_config({**GOOD, "scenario": {"known_classes": 4, **section}}))}

    assert shares(kind="mismatch") == {0.6}
    assert shares(ood_classes=1) == {0.2}
    for section in ({"kind": "mismatch"}, {"ood_classes": 2}):
        with pytest.raises(ConfigError, match=r"'scenario\.ood_share' has no say with"):
            parse_config({**GOOD, "scenario": {"known_classes": 4, "ood_share": 0.4, **section}})
    with pytest.raises(ConfigError, match="6 classes are left"):
        grid(parse_config({**GOOD, "scenario": {"known_classes": 4, "ood_classes": 7}}))
    with pytest.raises(ConfigError, match="drop ood_classes"):
        shares(kind="mismatch", ood_classes=2)
