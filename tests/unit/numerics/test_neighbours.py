"""Nearest neighbours against the obvious computation, and what happens at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mqnet.numerics import products
from mqnet.numerics.neighbours import (
    kth_distance,
    nearest_distance,
    nearest_similarity,
    nearest_similarity_by_class,
    topk_neighbours,
)


def cosines(pool: Tensor, refs: Tensor) -> Tensor:
    """All cosines in float64, 0 with a zero vector."""
    p, r = pool.double(), refs.double()
    lengths = p.norm(dim=1)[:, None] * r.norm(dim=1)[None, :]
    return torch.where(lengths > 0, p @ r.T / lengths.clamp_min(1e-300), torch.zeros(()).double())


def distances(pool: Tensor, refs: Tensor) -> Tensor:
    return (pool.double()[:, None, :] - refs.double()[None, :, :]).norm(dim=2)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_by_hand() -> None:
    pool = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])
    refs = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    torch.testing.assert_close(nearest_similarity(pool, refs), torch.tensor([0.8, 0.0, 0.0]))
    torch.testing.assert_close(
        nearest_similarity_by_class(pool, refs, torch.tensor([2, 0]), 3),
        torch.tensor([[0.8, -1.0, 0.6], [0.0, -1.0, 0.0], [0.0, -1.0, -1.0]]),
    )
    torch.testing.assert_close(nearest_distance(pool, refs), torch.tensor([13.0**0.5, 1.0, 2.0]))
    torch.testing.assert_close(kth_distance(pool, refs, 2), torch.tensor([20.0**0.5, 2.0, 5.0**0.5]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (7, 3, 5), (700, 900, 33), (65, 1, 16)])
def test_agrees_with_the_obvious_computation(dtype: torch.dtype, n: int, m: int, d: int) -> None:
    pool, refs = normal(n, d).to(dtype), normal(m, d, seed=1).to(dtype)
    torch.testing.assert_close(nearest_similarity(pool, refs), cosines(pool, refs).amax(1).float(), atol=1e-5, rtol=0)
    slow = distances(pool, refs).sort(1).values.float()
    torch.testing.assert_close(nearest_distance(pool, refs), slow[:, 0], atol=1e-5, rtol=1e-4)
    for k in (1, 2, 50, m + 5):
        torch.testing.assert_close(kth_distance(pool, refs, k), slow[:, min(k, m) - 1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 3, 20, 50])
def test_the_k_nearest_in_groups_and_without(metric: str, k: int) -> None:
    pool, refs = normal(300, 12), normal(1801, 12, seed=1)  # 1801: a rest that fills no group
    values, rows = topk_neighbours(pool, refs, k, metric=metric)  # pyright: ignore[reportArgumentType]
    slow = cosines(pool, refs) if metric == "cosine" else -distances(pool, refs)
    expected = slow.topk(k, 1)
    assert torch.equal(rows, expected.indices)
    torch.testing.assert_close(
        values,
        expected.values.abs().float() if metric == "euclidean" else expected.values.float(),
        atol=1e-5,
        rtol=1e-4,
    )


def test_equal_references_are_listed_by_row() -> None:
    refs = normal(40, 6).repeat(3, 1)
    _, rows = topk_neighbours(normal(20, 6, seed=1), refs, 6)
    assert bool((rows[:, 0] < rows[:, 1]).all())
    assert torch.equal(rows[:, 1] - rows[:, 0], torch.full((20,), 40))
    assert torch.equal(rows[:, 2] - rows[:, 1], torch.full((20,), 40))


def test_a_pool_row_that_is_a_reference_is_at_distance_zero_far_from_the_origin() -> None:
    refs = normal(50, 8) + 1000.0
    assert torch.equal(nearest_distance(refs, refs), torch.zeros(50))
    near = refs + 0.01 * normal(50, 8, seed=3)
    torch.testing.assert_close(
        nearest_distance(near, refs), distances(near, refs).amin(1).float(), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_cosines_do_not_depend_on_the_size_of_rows(scale: float) -> None:
    pool, refs = normal(20, 9), normal(10, 9, seed=1)
    torch.testing.assert_close(nearest_similarity(pool * scale, refs / scale), nearest_similarity(pool, refs))


def test_row_results_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, refs = normal(500, 24), normal(300, 24, seed=1)
    labels = torch.arange(300) % 7
    whole = (
        nearest_similarity(pool, refs),
        nearest_similarity_by_class(pool, refs, labels, 8),
        kth_distance(pool, refs, 9),
    )
    parts = [pool[start : start + 13] for start in range(0, 500, 13)]
    torch.testing.assert_close(torch.cat([nearest_similarity(p, refs) for p in parts]), whole[0])
    torch.testing.assert_close(torch.cat([nearest_similarity_by_class(p, refs, labels, 8) for p in parts]), whole[1])
    torch.testing.assert_close(torch.cat([kth_distance(p, refs, 9) for p in parts]), whole[2])
    monkeypatch.setattr(products, "_onednn_linear", lambda: None)  # the way taken where oneDNN is missing
    torch.testing.assert_close(nearest_similarity(pool, refs), whole[0])
    torch.testing.assert_close(kth_distance(pool, refs, 9), whole[2])


def test_by_class_is_the_nearest_of_each_class() -> None:
    pool, refs = normal(40, 5), normal(30, 5, seed=1)
    labels = torch.randint(0, 4, (30,), generator=torch.Generator().manual_seed(2))
    by_class = nearest_similarity_by_class(pool, refs, labels, 5)
    for k in range(4):
        torch.testing.assert_close(by_class[:, k], nearest_similarity(pool, refs[labels == k]))
    assert torch.equal(by_class[:, 4], torch.full((40,), -1.0))
    torch.testing.assert_close(by_class.amax(1), nearest_similarity(pool, refs))
    nobody = nearest_similarity_by_class(pool, refs[:0], labels[:0], 2)
    assert torch.equal(nobody, torch.full((40, 2), -1.0))


def test_reads_a_memory_mapped_half_precision_file(tmp_path) -> None:  # pyright: ignore
    np.save(tmp_path / "pool.npy", normal(64, 8).numpy().astype(np.float16))
    mapped = torch.from_numpy(np.load(tmp_path / "pool.npy", mmap_mode="c"))
    torch.testing.assert_close(
        nearest_similarity(mapped, mapped[:5]), cosines(mapped, mapped[:5]).amax(1).float(), atol=1e-5, rtol=0
    )


def test_inputs_are_left_alone() -> None:
    pool, refs = normal(9, 4), normal(5, 4)
    before = pool.clone(), refs.clone()
    kth_distance(pool, refs, 2)
    nearest_similarity(pool, refs)
    assert torch.equal(pool, before[0])
    assert torch.equal(refs, before[1])


def test_what_is_refused() -> None:
    pool, refs = normal(9, 4), normal(5, 4)
    with pytest.raises(ValueError, match="refs is empty"):
        nearest_similarity(pool, refs[:0])
    with pytest.raises(ValueError, match="5 columns where 4"):
        nearest_distance(pool, normal(3, 5))
    with pytest.raises(ValueError, match="at least 1"):
        kth_distance(pool, refs, 0)
    with pytest.raises(ValueError, match="lie in"):
        nearest_similarity_by_class(pool, refs, torch.tensor([0, 1, 2, 3, 4]), 4)
    broken = pool.clone()
    broken[6, 1] = float("nan")
    with pytest.raises(ValueError, match="row 6"):
        nearest_similarity(broken, refs)
    with pytest.raises(ValueError, match="row 6"):
        nearest_distance(broken, refs)


def test_no_pool_rows() -> None:
    assert nearest_similarity(torch.empty(0, 3), torch.ones(2, 3)).shape == (0,)
    assert topk_neighbours(torch.empty(0, 3), torch.ones(2, 3), 2)[0].shape == (0, 2)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 130),
    d=st.integers(1, 6),
    k=st.integers(1, 8),
    seed=st.integers(0, 10_000),
    levels=st.integers(1, 5),
)
def test_lattice_points_with_many_ties(n: int, m: int, d: int, k: int, seed: int, levels: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    pool = torch.randint(-levels, levels + 1, (n, d), generator=generator).float()
    refs = torch.randint(-levels, levels + 1, (m, d), generator=generator).float()
    values, rows = topk_neighbours(pool, refs, k, metric="euclidean")
    slow = distances(pool, refs)
    torch.testing.assert_close(values, slow.sort(1).values[:, : min(k, m)].float(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(slow.gather(1, rows).float(), values, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(nearest_similarity(pool, refs), cosines(pool, refs).amax(1).float(), atol=1e-5, rtol=0)
