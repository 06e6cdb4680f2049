"""Top-n against a sort, and the scaler at the edges of floating point."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mqnet.numerics.ranking import top_n
from mqnet.numerics.scaling import Scaler

NUMBERS = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0]), st.floats(-3, 3, width=32))
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=40)


@given(ROWS, st.integers(0, 45), st.integers(0, 3))
def test_top_n_is_the_head_of_a_sort(rows, n: int, n_keys: int) -> None:
    columns = [torch.tensor([row[i] for row in rows], dtype=torch.float32) for i in range(3)][: max(1, n_keys)]
    reference = sorted(range(len(rows)), key=lambda i: (*(-float(column[i]) for column in columns), i))
    assert top_n(columns[0], n, *columns[1:]).tolist() == reference[:n]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_ties_by_row(dtype: torch.dtype) -> None:
    scores = torch.tensor([1, 3, 2, 3, 3, 0], dtype=dtype)
    assert top_n(scores, 2).tolist() == [1, 3]
    assert top_n(scores, 4).tolist() == [1, 3, 4, 2]
    assert top_n(scores, 4, torch.tensor([0, 1, 0, 2, 2, 0])).tolist() == [3, 4, 1, 2]
    assert top_n(torch.zeros(1000, dtype=dtype), 5).tolist() == [0, 1, 2, 3, 4]
    assert top_n(scores, 0).tolist() == top_n(scores[:0], 3).tolist() == []
    assert sorted(top_n(scores, 9).tolist()) == list(range(6))


def test_infinite_scores_have_their_place() -> None:
    assert top_n(torch.tensor([0.0, -torch.inf, torch.inf]), 3).tolist() == [2, 0, 1]


def test_z_scores_by_hand() -> None:
    scores = torch.tensor([[1.0, 10.0], [2.0, 10.0], [3.0, 10.0]])
    scaler = Scaler.fit(scores)
    expected = torch.tensor([[-(1.5**0.5), 0.0], [0.0, 0.0], [1.5**0.5, 0.0]])
    torch.testing.assert_close(scaler.z(scores), expected)
    # fitted once, applied to others
    torch.testing.assert_close(scaler.z(torch.tensor([[2.0, 99.0]])), torch.zeros(1, 2))


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1e-30, 1e30, 16_777_217.0, 1 / 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_constant_column_is_zero(value: float, dtype: torch.dtype) -> None:
    scores = torch.full((1001, 1), value, dtype=dtype)
    assert Scaler.fit(scores).z(scores).abs().max() == 0


def test_an_outlier_is_clipped() -> None:
    scores = torch.cat([torch.linspace(-1, 1, 999), torch.tensor([1e6])])[:, None]
    scaler = Scaler.fit(scores, clip=4.0)
    assert scaler.z(scores).max() == 4.0
    assert scaler.unclipped(scores).max() > 30
    assert scaler.z(torch.tensor([[torch.finfo(torch.float32).max]])).item() == 4.0


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_a_large_offset_does_not_eat_the_differences(offset: float) -> None:
    steps = torch.arange(1000) % 10
    scores = (offset + steps.float())[:, None]  # exact in float32
    z = Scaler.fit(scores).z(scores)[:, 0]
    torch.testing.assert_close(z, ((steps - 4.5) / 8.25**0.5).float())


def test_float16_scores_do_not_overflow() -> None:
    scores = torch.full((4000, 1), 60_000.0, dtype=torch.float16)
    scores[0] = -60_000.0
    z = Scaler.fit(scores).z(scores)
    assert bool(z.isfinite().all())
    assert z[0] == -4.0


def test_no_items() -> None:
    assert Scaler.fit(torch.empty(0, 2)).z(torch.empty(0, 2)).shape == (0, 2)
