"""Informativeness from model outputs: against scipy, by hand, and where probabilities round to 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from scipy.stats import entropy as scipy_entropy
from torch import Tensor

from mqnet.ids import ItemIds, RowNames
from mqnet.numerics import softmax as rows_kernel
from mqnet.registry import INFORMATIVENESS
from mqnet.view import LabelledView, RoundView

Array = NDArray[np.float64]


def slow_margin(z: Array) -> Array:
    p = np.sort(softmax(z, axis=1), axis=1)
    return p[:, -2] - p[:, -1] if z.shape[1] > 1 else np.zeros(len(z))


SCORES: Mapping[str, Callable[[Array], Array]] = {
    "confidence": lambda z: 1.0 - softmax(z, axis=1).max(1),
    "margin": slow_margin,
    "entropy": lambda z: scipy_entropy(softmax(z, axis=1), axis=1),
}

SHAPES = [(0, 3), (1, 1), (50, 2), (1000, 5), (40_000, 3), (300, 32), (300, 33), (200, 1000)]


def view_of(**columns: Tensor) -> RoundView:
    nothing = LabelledView(ItemIds.of([]), {}, torch.zeros(0, dtype=torch.long))
    n = len(next(iter(columns.values())))
    return RoundView(ItemIds(RowNames(n)), columns, nothing, 3)


def scored(name: str, **columns: Tensor) -> Tensor:
    return INFORMATIVENESS.score(name)(view_of(**columns))


def normal(*shape: int, scale: float = 4.0) -> Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-11, "atol": 1e-13} if dtype is torch.float64 else {"rtol": 2e-5, "atol": 1e-6}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("n", "k"), [(0, 3), (1, 1), (50, 2), (1000, 5), (40_000, 3), (300, 32), (300, 33), (200, 1000)]
)
@pytest.mark.parametrize("name", SCORES)
def test_agrees_with_scipy(name: str, n: int, k: int, dtype: torch.dtype) -> None:
    logits = normal(n, k).to(dtype)
    slow = SCORES[name](logits.double().numpy()) if n else np.zeros(0)
    np.testing.assert_allclose(scored(name, logits=logits).double().numpy(), slow, **tolerance(dtype))


def test_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0, -1e9], [np.log(3.0), 0.0, -1e9]], dtype=torch.float64)
    h = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    for name, values in {"confidence": [0.5, 0.25], "margin": [0.0, -0.5], "entropy": [np.log(2.0), h]}.items():
        np.testing.assert_allclose(scored(name, logits=logits).numpy(), values, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize(("dtype", "gaps"), [(torch.float32, [8.0, 20.0, 40.0]), (torch.float64, [20.0, 100.0, 300.0])])
@pytest.mark.parametrize("k", [3, 50])
def test_nearly_certain_rows_keep_their_order_and_digits(dtype: torch.dtype, gaps: list[float], k: int) -> None:
    far = torch.tensor(gaps, dtype=torch.float64)
    logits = torch.full((3, k), -1e4, dtype=dtype)
    logits[:, 0], logits[:, 1] = 0.0, -far.to(dtype)
    small, columns = torch.exp(-far), {"logits": logits, "features": torch.ones(3, 4)}
    # the factors 1 / (1 + small) are left out of what is expected
    for name, expected in {
        "confidence": small,
        "entropy": small * (1.0 + far),
        "gradient_norm": 2.0 * 2.0**0.5 * small,
    }.items():
        np.testing.assert_allclose(scored(name, **columns).double(), expected, rtol=1e-3)


@pytest.mark.parametrize("k", [2, 3, 7, 40])
def test_close_classes_keep_the_digits_of_their_margin(k: int) -> None:
    logits = torch.zeros(2, k, dtype=torch.float64)
    logits[:, -1] = torch.tensor([1e-12, 0.0])
    np.testing.assert_allclose(scored("margin", logits=logits), [-1e-12 / k, 0.0], rtol=1e-3)


def outputs(scale: float, k: int = 4, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    return {
        "logits": normal(3000, k, scale=scale).to(dtype),
        "features": normal(3000, 5, scale=scale).to(dtype),
        "mc_logits": normal(3000, 6, k, scale=scale).to(dtype),
        "predicted_loss": normal(3000, scale=scale).to(dtype),
    }


ALL = ("confidence", "margin", "entropy", "gradient_norm", "bald", "predicted_loss")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1.0, 100.0, 1e18])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_finite_and_without_regard_to_order_chunks_or_input(
    name: str, scale: float, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = outputs(scale, k)
    before = {key: column.clone() for key, column in columns.items()}
    whole = scored(name, **columns)
    assert whole.isfinite().all()
    order = torch.randperm(3000, generator=torch.Generator().manual_seed(0))
    tolerances = {"rtol": 1e-5, "atol": 1e-6}
    shuffled = scored(name, **{key: column[order] for key, column in columns.items()})
    torch.testing.assert_close(shuffled, whole[order], **tolerances)
    monkeypatch.setattr(rows_kernel, "CHUNK_ENTRIES", 500)
    torch.testing.assert_close(scored(name, **columns), whole, **tolerances)
    assert all(torch.equal(columns[key], before[key]) for key in columns)


@pytest.mark.parametrize("name", ALL[:-1])
def test_the_largest_numbers_there_are(name: str) -> None:
    largest = torch.finfo(torch.float32).max
    logits = torch.tensor([[largest, -largest], [largest, largest], [-largest, 0.0], [1e-45, 0.0]])
    columns = {"logits": logits, "features": torch.ones(4, 2), "mc_logits": logits[:, None].repeat(1, 3, 1)}
    columns["mc_logits"][0, 0] = torch.tensor([-largest, largest])
    assert scored(name, **columns).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "t", "k"), [(1, 1, 1), (40, 1, 3), (700, 20, 4), (90, 7, 50)])
def test_bald_is_the_mean_divergence_from_the_mean(n: int, t: int, k: int, dtype: torch.dtype) -> None:
    samples = normal(n, t, k, scale=2.0).to(dtype)
    log_p = log_softmax(samples.double().numpy(), axis=2)
    p = np.exp(log_p)
    slow = np.array([np.mean([scipy_entropy(p[i, j], p[i].mean(0)) for j in range(t)]) for i in range(n)])
    np.testing.assert_allclose(scored("bald", mc_logits=samples).double(), slow, **tolerance(dtype))


def test_bald_by_hand() -> None:
    opposed = torch.tensor([[[50.0, -50.0], [-50.0, 50.0]], [[0.0, 0.0], [0.0, 0.0]], [[9.0, 0.0], [9.0, 0.0]]])
    torch.testing.assert_close(scored("bald", mc_logits=opposed), torch.tensor([float(np.log(2.0)), 0.0, 0.0]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 2, 6, 40])
def test_gradient_norm_is_the_length_of_the_gradient(k: int, dtype: torch.dtype) -> None:
    logits, features = normal(60, k).to(dtype), normal(60, 7).to(dtype)
    weights = torch.zeros(k, 7, dtype=torch.float64, requires_grad=True)
    slow: list[float] = []
    for z, h in zip(logits.double(), features.double(), strict=True):
        loss = torch.nn.functional.cross_entropy(z + weights @ h, z.argmax())
        slow.append(float(torch.autograd.grad(loss, weights)[0].norm()))
    np.testing.assert_allclose(scored("gradient_norm", logits=logits, features=features), slow, **tolerance(dtype))


def test_predicted_loss_is_the_column() -> None:
    column = torch.tensor([0.5, -1.0, 3.0], dtype=torch.float16)
    result = scored("predicted_loss", predicted_loss=column)
    assert result.dtype is torch.float32
    assert result.tolist() == [0.5, -1.0, 3.0]


@pytest.mark.parametrize("name", ["confidence", "margin", "entropy", "gradient_norm"])
def test_doubt_is_asked_first(name: str) -> None:
    scores = scored(name, logits=torch.tensor([[6.0, 0.0, 0.0], [0.1, 0.0, 0.1]]), features=torch.ones(2, 3))
    assert scores[1] > scores[0]
