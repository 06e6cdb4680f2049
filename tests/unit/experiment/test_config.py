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
        ({**GOOD, "scenarios": {}}, "scenarios", "scenario"),
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
        (_with("scenario", kind="mix"), "'scenario.kind' is 'mix': input should be 'split' or 'cross'"),
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
