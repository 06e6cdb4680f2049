"""The columns `odin` and `react` read, as the MLP head gives them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.models.base import TrainingSet
from mqnet.models.head import Head, encode
from mqnet.models.mlp import FittedHead, MlpHead, odin_gradient
from mqnet.rng import Key

RECIPE = MlpHead(hidden=16, n_steps=60)
COLUMNS = frozenset({"odin_logits", "react_logits", "logits", "features"})


def rows(n: int, seed: int = 0) -> Tensor:
    return 5.0 + torch.randn(n, 7, generator=torch.Generator().manual_seed(seed))


def fitted(recipe: MlpHead = RECIPE, n: int = 30) -> FittedHead:
    train = TrainingSet(rows(n, 1), torch.arange(n) % 3, rows(0), 3)
    return recipe.fit(train, COLUMNS, Key(1))


def slow_logits(head: Head, x: Tensor) -> Tensor:
    w = {name: tensor.double() for name, tensor in head.to_tensors().items()}
    return torch.relu((x.double() - w["mean"]) / w["scale"] @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1000.0])
def test_odin_gradient_equals_autograd(temperature: float) -> None:
    head, x = fitted().head, rows(40).requires_grad_()
    torch.log_softmax(slow_logits(head, x) / temperature, 1).amax(1).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(odin_gradient(head, x.detach(), temperature), x.grad, rtol=1e-3, atol=1e-7 / temperature)


def test_odin_logits_are_those_of_the_moved_input() -> None:
    model, x = fitted(), rows(40)
    moved = x + 0.05 * model.head.scale * odin_gradient(model.head, x, 1000.0).sign()
    slow = slow_logits(model.head, moved) / 1000.0
    torch.testing.assert_close(model.encode(x, COLUMNS)["odin_logits"].double(), slow, rtol=1e-4, atol=1e-7)


def test_odin_makes_the_likely_class_likelier_and_zero_perturbation_does_nothing() -> None:
    x = rows(200)
    still, moved = (fitted(replace(RECIPE, odin_perturbation=eps, odin_temperature=1.0)) for eps in (0.0, 0.02))
    before, after = (torch.softmax(m.encode(x, COLUMNS)["odin_logits"], 1).amax(1) for m in (still, moved))
    torch.testing.assert_close(still.encode(x, COLUMNS)["odin_logits"], still.encode(x, COLUMNS)["logits"])
    assert (after >= before).float().mean() > 0.99


def test_odin_ignores_bfloat16_and_keeps_half_precision_inputs_as_they_are() -> None:
    model = fitted(replace(RECIPE, precision="bfloat16"))
    x = rows(20).half()
    copy = x.clone()
    exact = replace(model, head=replace(model.head, bfloat16=torch.tensor(False)))
    assert torch.equal(model.encode(x, COLUMNS)["odin_logits"], exact.encode(x, COLUMNS)["odin_logits"])
    assert torch.equal(x, copy)


def test_react_clips_at_a_percentile_of_the_labelled_activations() -> None:
    model, x = fitted(), rows(50)
    bound = np.percentile(encode(model.head, rows(30, 1))["features"], 90.0)
    assert float(model.react_bound) == pytest.approx(bound)
    clipped = np.minimum(encode(model.head, x)["features"].double().numpy(), bound)
    slow = clipped @ model.head.w2.double().numpy() + model.head.b2.double().numpy()
    np.testing.assert_allclose(model.encode(x, COLUMNS)["react_logits"], slow, rtol=1e-4, atol=1e-5)


def test_without_clipping_react_is_the_energy_of_the_labelled_items() -> None:
    model = fitted(replace(RECIPE, react_percentile=100.0))
    columns = model.encode(rows(30, 1), COLUMNS)
    torch.testing.assert_close(columns["react_logits"], columns["logits"])


def test_the_state_brings_both_columns_back() -> None:
    model, x = fitted(), rows(20)
    back = RECIPE.restore({name: tensor.clone() for name, tensor in model.state().items()})
    for name, column in model.encode(x, COLUMNS).items():
        assert torch.equal(column, back.encode(x, COLUMNS)[name])


@pytest.mark.parametrize("n", [0, 1])
def test_one_label_or_none_gives_finite_columns(n: int) -> None:
    for column in fitted(n=n).encode(rows(20), COLUMNS).values():
        assert column.isfinite().all()


@pytest.mark.parametrize("wrong", [{"odin_temperature": 0.0}, {"odin_perturbation": -1.0}, {"react_percentile": 0.0}])
def test_wrong_options_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        MlpHead(**wrong)  # pyright: ignore[reportArgumentType]
