"""Purity from logits: against scipy, by hand, and where softmax code usually breaks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, softmax
from torch import Tensor

from mqnet.ids import ItemIds, RowNames
from mqnet.numerics import softmax as rows_kernel
from mqnet.registry import PURITY
from mqnet.view import LabelledView, RoundView

SCORES = {
    "msp": lambda z: softmax(z, axis=1).max(1),
    "max_logit": lambda z: z.max(1),
    "energy": lambda z: logsumexp(z, axis=1),
    "react": lambda z: logsumexp(z, axis=1),
    "odin": lambda z: softmax(z, axis=1).max(1),
}

SHAPES = [(0, 3), (1, 1), (50, 2), (1000, 4), (40_000, 3), (300, 32), (300, 33), (200, 1000)]


def view_of(logits: Tensor) -> RoundView:
    nothing = LabelledView(ItemIds.of([]), {}, torch.zeros(0, dtype=torch.long))
    columns = dict.fromkeys(("logits", "react_logits", "odin_logits"), logits)
    return RoundView(ItemIds(RowNames(len(logits))), columns, nothing, logits.shape[1])


def scored(name: str, logits: Tensor, **options: object) -> Tensor:
    return PURITY.score(name, options)(view_of(logits))


def normal(n: int, k: int, scale: float = 4.0) -> Tensor:
    return scale * torch.randn(n, k, generator=torch.Generator().manual_seed(n + k), dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("n", "k"), [(0, 3), (1, 1), (50, 2), (1000, 4), (40_000, 3), (300, 32), (300, 33), (200, 1000)]
)
@pytest.mark.parametrize("name", SCORES)
def test_agrees_with_scipy(name: str, n: int, k: int, dtype: torch.dtype) -> None:
    logits = normal(n, k).to(dtype)
    result = scored(name, logits)
    exact = name == "odin" or dtype is torch.float64
    assert result.dtype is (torch.float64 if exact else torch.float32)
    slow = SCORES[name](logits.double().numpy()) if n else np.zeros(0)
    np.testing.assert_allclose(
        result.double().numpy(), slow, rtol=1e-12 if exact else 2e-6, atol=1e-13 if exact else 2e-6
    )


@pytest.mark.parametrize("temperature", [0.1, 2.0, 1000.0])
def test_energy_at_a_temperature(temperature: float) -> None:
    logits = normal(100, 5)
    slow = logsumexp(logits.numpy() / temperature, axis=1)
    np.testing.assert_allclose(scored("energy", logits, temperature=temperature).numpy(), slow, rtol=1e-12)


def test_by_hand() -> None:
    logits = torch.tensor([[0.0, 0.0], [float(np.log(3.0)), 0.0]], dtype=torch.float64)
    expected = {
        "msp": [0.5, 0.75],
        "odin": [0.5, 0.75],
        "max_logit": [0.0, np.log(3.0)],
        "energy": [np.log(2.0), np.log(4.0)],
        "react": [np.log(2.0), np.log(4.0)],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(scored(name, logits).numpy(), values, rtol=1e-15)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("k", [3, 40])
def test_extreme_logits_are_finite(name: str, k: int) -> None:
    largest = torch.finfo(torch.float32).max
    logits = torch.zeros(6, k)
    logits[0, 0], logits[1, 1], logits[2], logits[3, 0] = largest, -largest, -largest, 1e-45
    logits[4, 0], logits[4, 1:] = largest, -largest
    assert scored(name, logits).isfinite().all()
    assert scored(name, logits.double() * 1e200).isfinite().all()


@pytest.mark.parametrize("name", SCORES)
def test_chunks_order_and_input_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = normal(5000, 6).float()
    before = logits.clone()
    whole = scored(name, logits)
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(scored(name, logits[order]), whole[order], rtol=1e-6, atol=1e-6)
    monkeypatch.setattr(rows_kernel, "CHUNK_ENTRIES", 1000)
    torch.testing.assert_close(scored(name, logits), whole, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(scored(name, logits[:, [5, 4, 3, 2, 1, 0]]), whole, rtol=1e-6, atol=1e-6)
    assert torch.equal(logits, before)


@pytest.mark.parametrize("name", SCORES)
def test_a_clear_winner_is_purer(name: str) -> None:
    scores = scored(name, torch.tensor([[0.1, 0.0, 0.1], [6.0, 0.0, 0.0]]))
    assert scores[1] > scores[0]


def test_a_column_that_is_not_contiguous_or_wants_gradients() -> None:
    logits = normal(20, 12).float()
    torch.testing.assert_close(scored("energy", logits[::2, ::3]), logits[::2, ::3].logsumexp(1))
    assert not scored("msp", logits.requires_grad_()).requires_grad


@pytest.mark.parametrize("size", [0.0, 1e-40, 1e-30, 1.0, 1e30])
def test_norms_of_any_size(size: float) -> None:
    rows = torch.full((3, 4), size)
    torch.testing.assert_close(rows_kernel.norms(rows).double(), rows.double().norm(dim=1), rtol=1e-6, atol=0.0)
