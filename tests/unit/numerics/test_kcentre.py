"""k-centre greedy makes the picks of the plain loop, item for item."""

from __future__ import annotations

import pytest
import torch
from benchmarks.reference.kcentre import k_centre_plain
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mqnet.numerics import kcentre
from mqnet.numerics.kcentre import k_centre_greedy


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same_as_plain(pool: Tensor, first: Tensor, k: int) -> None:
    assert k_centre_greedy(pool, first, k).tolist() == k_centre_plain(pool, first, k)


def test_by_hand() -> None:
    pool = torch.tensor([[0.0], [1.0], [10.0], [6.0], [-3.0]])
    # From 0: 10 is farthest; then 6 (4 from 10) beats -3 (3 from 0); then -3, then 1, then the centre's own copy.
    assert k_centre_greedy(pool, torch.tensor([[0.0]]), 5).tolist() == [2, 3, 4, 1, 0]
    # Without a first centre everything is infinitely far: the lowest row, here 0 as well.
    assert k_centre_greedy(pool, pool[:0], 3).tolist() == [0, 2, 3]


def test_ties_go_to_the_lowest_row() -> None:
    pool = torch.tensor([[0.0, 0.0], [0.0, 3.0], [3.0, 0.0], [0.0, -3.0], [-3.0, 0.0]])
    assert k_centre_greedy(pool, pool[:1], 5).tolist() == [1, 2, 3, 4, 0]


def clustered(n: int, d: int, seed: int) -> Tensor:
    centres = 4.0 * normal(12, d, seed=seed)
    return torch.relu(centres[torch.arange(n) % 12] + 0.3 * normal(n, d, seed=seed + 1))


@pytest.mark.parametrize("small_lists", [False, True])
@pytest.mark.parametrize("n_first", [0, 1, 40])
@pytest.mark.parametrize("shape", ["normal", "clustered", "far from the origin", "half precision"])
def test_random_pools(shape: str, n_first: int, small_lists: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if small_lists:  # every way through lists, refreshes and lists that are too short
        monkeypatch.setattr(kcentre, "_FIRST_HOT_ROWS", 2)
        monkeypatch.setattr(kcentre, "_MOST_HOT_ENTRIES", 1)
    pool = clustered(1500, 16, 1) if shape == "clustered" else normal(1500, 16)
    pool = pool + 300.0 if shape == "far from the origin" else pool.half() if shape == "half precision" else pool
    same_as_plain(pool, pool[700 : 700 + n_first], 150)


@pytest.mark.parametrize("first_hot_rows", [1, 3, 2048])
def test_duplicates_and_zero_vectors(first_hot_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kcentre, "_FIRST_HOT_ROWS", first_hot_rows)
    base = normal(30, 5)
    pool = torch.cat([base, torch.zeros(10, 5), base, base[:7]])
    for first in (pool[:0], pool[3:5], torch.zeros(1, 5)):
        same_as_plain(pool, first, 77)
        same_as_plain(pool, first, 40)
    same_as_plain(torch.zeros(20, 3), torch.zeros(0, 3), 20)
    same_as_plain(torch.ones(20, 3), torch.ones(4, 3), 20)


def test_many_equal_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kcentre, "_FIRST_HOT_ROWS", 4)
    monkeypatch.setattr(kcentre, "_MOST_HOT_ENTRIES", 64)
    pool = torch.eye(9)[torch.arange(600) % 9]
    same_as_plain(pool, pool[:0], 60)


def test_fewer_rows_than_asked_for() -> None:
    pool = normal(7, 3)
    assert sorted(k_centre_greedy(pool, pool[:1], 20).tolist()) == list(range(7))
    assert k_centre_greedy(pool, pool[:1], 0).tolist() == []
    assert k_centre_greedy(pool[:0], pool[:1], 5).tolist() == []


def test_a_shorter_query_is_a_prefix() -> None:
    pool = normal(400, 8)
    whole = k_centre_greedy(pool, pool[:3], 200).tolist()
    for k in (1, 2, 50, 199):
        assert k_centre_greedy(pool, pool[:3], k).tolist() == whole[:k]


@settings(deadline=None, max_examples=100)
@given(
    n=st.integers(1, 60), d=st.integers(1, 4), m=st.integers(0, 4), k=st.integers(0, 70), levels=st.integers(0, 3),
    seed=st.integers(0, 10_000), hot=st.integers(1, 30),
)  # fmt: skip
def test_lattice_points(n: int, d: int, m: int, k: int, levels: int, seed: int, hot: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    pool = torch.randint(-levels, levels + 1, (n, d), generator=generator) / 3.0
    first = torch.randint(-levels, levels + 1, (m, d), generator=generator) / 3.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kcentre, "_FIRST_HOT_ROWS", hot)
        patch.setattr(kcentre, "_MOST_HOT_ENTRIES", 1)
        same_as_plain(pool, first, k)


def test_what_is_refused() -> None:
    pool = normal(9, 4)
    broken = pool.clone()
    broken[5, 2] = float("inf")
    with pytest.raises(ValueError, match="row 5"):
        k_centre_greedy(broken, pool[:1], 2)
    with pytest.raises(ValueError, match="4 are expected"):
        k_centre_greedy(pool, normal(2, 3), 2)
    with pytest.raises(ValueError, match="negative"):
        k_centre_greedy(pool, pool[:1], -1)


def test_inputs_are_left_alone() -> None:
    pool, first = normal(50, 4), normal(3, 4)
    before = pool.clone(), first.clone()
    k_centre_greedy(pool, first, 10)
    assert torch.equal(pool, before[0])
    assert torch.equal(first, before[1])
