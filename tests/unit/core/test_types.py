"""Answers, costs and configurations: what can be meant, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from mqnet.errors import AnswerError, ConfigError, PluginError
from mqnet.store.codec import from_json, to_json
from mqnet.testing import make_scene
from mqnet.types import OOD, SKIP, Budget, CampaignConfig, Costs, Known, Plugin, as_answer
from mqnet.view import RoundView

CLASSES = ("cat", "dog")


def test_answers() -> None:
    assert as_answer("cat", CLASSES, "x") == Known("cat")
    assert as_answer(Known("dog"), CLASSES, "x") == Known("dog")
    assert as_answer(OOD, CLASSES, "x") is OOD
    assert as_answer(SKIP, CLASSES, "x") is SKIP


@pytest.mark.parametrize("value", [0, 1.5, None, True, ["cat"], b"cat"])
def test_something_else_is_no_answer(value) -> None:
    with pytest.raises(AnswerError, match=r"item 'img_17': .* is not an answer. Give a class name, OOD or SKIP"):
        as_answer(value, CLASSES, "img_17")


@pytest.mark.parametrize("name", ["cats", "OOD", "", "Cat"])
def test_an_unknown_class_is_named(name: str) -> None:
    with pytest.raises(AnswerError, match=f"item 'img_17': '{name}' is not a known class.*Choices: cat, dog"):
        as_answer(name, CLASSES, "img_17")


@pytest.mark.parametrize("cost", [0, -1, math.inf, math.nan])
def test_costs_are_positive_numbers(cost: float) -> None:
    with pytest.raises(ConfigError, match="cost_known"):
        Costs(known=cost)
    with pytest.raises(ConfigError, match="cost_ood"):
        Costs(ood=cost)


@pytest.mark.parametrize("cost", [-0.1, 1.1, math.inf, math.nan])
def test_a_skip_costs_no_more_than_a_label(cost: float) -> None:
    with pytest.raises(ConfigError, match="cost_skip"):
        Costs(skip=cost)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ()}, "no classes"),
        ({"classes": ("a", "a")}, "unique"),
        ({"classes": ("a", "")}, "not empty"),
        ({"rounds": 0}, "at least one round"),
        ({"budget": Budget(3.0)}, "budget is 3, below the dearest label's cost of 4"),
        ({"budget": Budget(math.nan)}, "budget is nan"),
        ({"budget": Budget(math.inf)}, "budget is inf"),
        ({"budget": Budget(8.0, 3.0)}, "total_budget is 3"),
    ],
)
def test_a_campaign_that_cannot_run_is_refused(change, message: str) -> None:
    config = {"classes": CLASSES, "budget": Budget(8.0), "costs": Costs(1.0, 4.0), **change}
    with pytest.raises(ConfigError, match=message):
        CampaignConfig(**config).check()


def test_a_configuration_survives_storing() -> None:
    config = CampaignConfig(
        ("Katze", "犬"),
        Budget(8.0, 100.0),
        Costs(1.0, 4.0, 0.5),
        3,
        Plugin("sum", {"clip": 3.0}),
        Plugin("head", {}),
        7,
    )
    assert from_json(to_json(config)) == config
    assert to_json(from_json(to_json(config))) == to_json(config)


def test_a_view_of_uneven_columns_is_refused() -> None:
    view = make_scene().view
    with pytest.raises(PluginError, match="pool column 'logits' has 3 rows for 72 items"):
        RoundView(view.ids, {"logits": torch.zeros(3, 2)}, view.labelled, 3)
    with pytest.raises(TypeError):
        view.columns["new"] = torch.zeros(72)  # type: ignore[index]


def test_a_views_randomness_belongs_to_its_items() -> None:
    view, shuffled = make_scene().view, make_scene(pool_order=1).view
    assert torch.equal(view.uniform("a"), shuffled.uniform("a"))
    assert not torch.equal(view.uniform("a"), view.uniform("b"))
