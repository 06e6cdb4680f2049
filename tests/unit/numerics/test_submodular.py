"""Greedy conditional mutual information on factors makes the picks of plain greedy on explicit kernels."""

from __future__ import annotations

import math

import pytest
import torch
from benchmarks.reference.submodular import (
    cosine_kernel,
    facility_location_cmi_value,
    greedy_plain,
    log_det_cmi_value,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mqnet.numerics import submodular_facility, submodular_logdet
from mqnet.numerics.gradients import Factored, cosine_scales, output_gradients
from mqnet.numerics.projection import project
from mqnet.numerics.submodular_facility import facility_location_cmi, largest_cosine
from mqnet.numerics.submodular_logdet import log_det_cmi


def items(n: int, n_outputs: int, d: int, seed: int, scale: float = 2.0) -> Factored:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(n, n_outputs, generator=generator)
    return Factored(output_gradients(logits), torch.randn(n, d, generator=generator))


def joined(*parts: Factored) -> Factored:
    return Factored(torch.cat([part.a for part in parts]), torch.cat([part.h for part in parts]))


NOBODY = Factored(torch.empty(0, 3), torch.empty(0, 6))
POOL, QUERY, PRIVATE = items(30, 3, 6, 0), items(7, 3, 6, 1), items(5, 3, 6, 2)


def log_det_plain(pool: Factored, query: Factored, private: Factored, k: int, *scaling: float) -> list[int]:
    return greedy_plain(lambda rows: log_det_cmi_value(pool, query, private, rows, *scaling), len(pool.a), k)


def facility_plain(pool: Factored, query: Factored, private: Factored, k: int, *scaling: float) -> list[int]:
    def value(rows: list[int]) -> float:
        return facility_location_cmi_value(pool, query, private, rows, *scaling)

    return greedy_plain(value, len(pool.a), k)


@pytest.mark.parametrize("private", [PRIVATE, NOBODY, items(40, 3, 6, 3)])
@pytest.mark.parametrize("query", [QUERY, items(1, 3, 6, 4), items(60, 3, 6, 5)])
@pytest.mark.parametrize("strength", [1.0, 0.7])
def test_log_det_picks(query: Factored, private: Factored, strength: float) -> None:
    fast = log_det_cmi(POOL, query, private, 10, relevance=strength, privacy=strength).tolist()
    assert fast == log_det_plain(POOL, query, private, 10, strength, strength)


def test_log_det_with_duplicates_and_zero_vectors() -> None:
    zeros = Factored(POOL.a[:2], torch.zeros(2, 6))
    pool = joined(POOL.take(slice(0, 8)), zeros, POOL.take(slice(0, 8)))
    slow = log_det_plain(pool, QUERY, joined(PRIVATE, zeros), 16)
    fast = log_det_cmi(pool, QUERY, joined(PRIVATE, zeros), 18).tolist()
    assert fast[:16] == slow
    assert slow[0] < 8  # of two equal items the lower
    assert fast[16:] == [8, 9]  # zero vectors gain nothing: last, lowest first


def test_log_det_by_hand() -> None:
    """One query vector, two candidates on the same axis system: gain = log((1 + r) / ((1 + r) - c^2 / (1 + r)))."""
    pool = Factored(torch.ones(2, 1), torch.tensor([[0.0, 1.0], [0.6, 0.8]]))
    query = Factored(torch.ones(1, 1), torch.tensor([[1.0, 0.0]]))
    nobody = Factored(torch.empty(0, 1), torch.empty(0, 2))
    assert log_det_cmi(pool, query, nobody, 2, ridge=0.5).tolist() == [1, 0]
    assert log_det_cmi_value(pool, query, nobody, [1], ridge=0.5) == pytest.approx(
        math.log(1.5 / (1.5 - 0.36 / 1.5)), abs=1e-7
    )
    assert log_det_cmi_value(pool, query, nobody, [0], ridge=0.5) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("strength", [1.0, 0.7])
def test_intervals_hold_the_float64_variances_of_every_item(strength: float) -> None:
    pool, labelled = items(1500, 4, 24, 0), items(80, 4, 24, 1)
    scales, strengths = cosine_scales(pool), torch.full((80,), strength, dtype=torch.float64)
    chain = submodular_logdet._Variances(pool, scales, project(labelled, strengths, 1e-3), 1e-3, 60)
    assert (chain.given.screen is not None) == (strength == 1.0)  # both forms of the projection
    other = submodular_logdet._Variances(pool, scales, project(labelled, strengths, 1e-3), 1e-3, 60)
    for row in range(0, 1200, 20):
        chain.exact(torch.tensor([row]))
        other.exact(torch.tensor([row]))
        submodular_logdet._condition_on(row, pool, scales, (chain, other))
    chain.calibrate()
    low, high = chain.interval()
    exact = chain.exact(torch.arange(1500))
    assert bool(((low <= exact) & (exact <= high)).all())
    taken = torch.arange(0, 1200, 20)  # against the explicit Schur complement, for items that were not taken
    kernel = cosine_kernel(joined(labelled, pool.take(taken), pool.take(slice(1201, 1220))),
                           joined(labelled, pool.take(taken), pool.take(slice(1201, 1220))))  # fmt: skip
    kernel[:80, 80:] *= strength
    kernel[80:, :80] *= strength
    kernel.diagonal().add_(1e-3)
    schur = kernel[140:, 140:] - kernel[140:, :140] @ torch.linalg.solve(kernel[:140, :140], kernel[:140, 140:])
    torch.testing.assert_close(exact[1201:1220], schur.diagonal(), rtol=1e-9, atol=1e-9)


def test_log_det_without_query_gains_nothing() -> None:
    assert log_det_cmi(POOL, NOBODY, PRIVATE, 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("strengths", [(1.0, 1.0), (0.9, 0.3), (0.5, 0.8)])
@pytest.mark.parametrize("private", [PRIVATE, NOBODY, items(40, 3, 6, 3)])
def test_facility_picks(private: Factored, strengths: tuple[float, float]) -> None:
    for query in (QUERY, items(60, 3, 6, 5)):
        slow = facility_plain(POOL, query, private, 30, *strengths)
        fast = facility_location_cmi(POOL, query, private, 30, relevance=strengths[0], privacy=strengths[1]).tolist()
        assert fast[: len(slow)] == slow
        assert sorted(fast) == list(range(30))


def test_facility_with_duplicates_and_zero_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submodular_facility, "_BATCH", 1)
    monkeypatch.setattr(submodular_facility, "_CACHED_ENTRIES", 0)
    zeros = Factored(POOL.a[:2], torch.zeros(2, 6))
    pool = joined(zeros, POOL.take(slice(0, 9)), POOL.take(slice(0, 9)))
    slow = facility_plain(pool, QUERY, PRIVATE, 20)
    fast = facility_location_cmi(pool, QUERY, PRIVATE, 20).tolist()
    assert fast[: len(slow)] == slow
    assert sorted(fast) == list(range(20))
    assert fast[len(slow) :].index(0) < fast[len(slow) :].index(1)  # zero vectors never gain anything


def test_facility_by_hand() -> None:
    """Angles 0, 60, 90 degrees; the query at 0 degrees caps everybody at (1, 1/2, 0)."""
    pool = Factored(torch.ones(3, 1), torch.tensor([[0.0, 2.0], [0.5, 0.75**0.5], [3.0, 0.0]]))
    query = Factored(torch.ones(1, 1), torch.tensor([[1.0, 0.0]]))
    nobody = Factored(torch.empty(0, 1), torch.empty(0, 2))
    # Alone: 90 deg brings min(cos 30, 1/2) = .5; 60 deg brings .5 + .5; 0 deg brings 1 + .5.
    assert facility_location_cmi_value(pool, query, nobody, [0]) == pytest.approx(0.5)
    assert facility_location_cmi_value(pool, query, nobody, [2]) == pytest.approx(1.5)
    # Item 2 saturates everything, so a new start follows: 1 (gains 1.0) before 0.
    assert facility_location_cmi(pool, query, nobody, 3).tolist() == [2, 1, 0]


@pytest.mark.parametrize("choose", [log_det_cmi, facility_location_cmi])
def test_longer_queries_extend_shorter_ones(choose) -> None:  # pyright: ignore
    whole = choose(POOL, QUERY, PRIVATE, 30).tolist()
    assert sorted(whole) == list(range(30))
    assert choose(POOL, QUERY, PRIVATE, 45).tolist() == whole
    for k in (0, 1, 5, 29):
        assert choose(POOL, QUERY, PRIVATE, k).tolist() == whole[:k]


def test_sampled_objective_is_near_the_exact_one() -> None:
    centres = torch.randn(30, 16, generator=torch.Generator().manual_seed(5))
    pool, query, private = (
        Factored(part.a, centres[torch.arange(len(part.h)) % 30] + 0.3 * part.h)
        for part in (items(1200, 4, 16, 6), items(40, 4, 16, 7), items(40, 4, 16, 8))
    )
    exact = facility_location_cmi(pool, query, private, 40).tolist()
    most = facility_location_cmi_value(pool, query, private, exact)
    for seed in range(3):
        draws = torch.Generator().manual_seed(seed)
        sampled = facility_location_cmi(pool, query, private, 40, sampled_items=300, generator=draws).tolist()
        assert most > facility_location_cmi_value(pool, query, private, sampled) >= 0.95 * most
    draws = torch.Generator().manual_seed(0)
    assert facility_location_cmi(pool, query, private, 40, sampled_items=1200, generator=draws).tolist() == exact


def test_a_sample_counts_what_a_candidate_brings_to_itself_exactly() -> None:
    """Orthogonal items gain from themselves alone, so any sample must give the exact order: by falling cap."""
    caps = torch.tensor([3.0, 9.0, 1.0, 7.0, 8.0, 2.0, 6.0, 5.0, 4.0, 10.0])
    pool = Factored(torch.ones(10, 1), torch.eye(10))
    query = Factored(torch.ones(1, 1), caps[None, :])
    nobody = Factored(torch.empty(0, 1), torch.empty(0, 10))
    for seed in range(10):
        draws = torch.Generator().manual_seed(seed)
        sampled = facility_location_cmi(pool, query, nobody, 10, sampled_items=3, generator=draws)
        assert torch.equal(sampled, caps.argsort(descending=True))


def test_factors_are_the_kernel() -> None:
    kernel = cosine_kernel(POOL, QUERY)
    torch.testing.assert_close(largest_cosine(POOL, QUERY), kernel.amax(1))
    scaled = POOL.a.double() * cosine_scales(POOL)[:, None]
    torch.testing.assert_close((scaled @ QUERY.a.double().T) * (POOL.h.double() @ QUERY.h.double().T)
                               * cosine_scales(QUERY), kernel)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 14), n_query=st.integers(0, 5), n_private=st.integers(0, 5), levels=st.integers(1, 3),
    seed=st.integers(0, 10_000),
)  # fmt: skip
def test_lattice_items(n: int, n_query: int, n_private: int, levels: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def lattice(size: int) -> Factored:
        draw = [torch.randint(-levels, levels + 1, (size, width), generator=generator).float() for width in (2, 3)]
        return Factored(*draw)

    pool, query, private = lattice(n), lattice(n_query), lattice(n_private)
    slow = log_det_plain(pool, query, private, n)
    fast = log_det_cmi(pool, query, private, n).tolist()
    assert sorted(fast) == list(range(n))
    # Equal gains are frequent here and determinants carry 1e-9 of noise, so compare what the picks are worth.
    for size in range(1, len(slow) + 1):
        worth = log_det_cmi_value(pool, query, private, fast[:size])
        if fast[:size] != slow[:size]:
            assert worth == pytest.approx(log_det_cmi_value(pool, query, private, slow[:size]), abs=1e-6)
            break
    slow = facility_plain(pool, query, private, n)
    fast = facility_location_cmi(pool, query, private, n).tolist()
    assert sorted(fast) == list(range(n))
    assert fast[: len(slow)] == slow


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"query\.h has 5 columns where 6"):
        log_det_cmi(POOL, items(3, 3, 5, 0), PRIVATE, 2)
    with pytest.raises(ValueError, match="relevance and privacy in"):
        facility_location_cmi(POOL, QUERY, PRIVATE, 2, privacy=1.5)
    broken = Factored(POOL.a, POOL.h.clone())
    broken.h[11, 0] = float("nan")
    with pytest.raises(ValueError, match="row 11"):
        log_det_cmi(broken, QUERY, PRIVATE, 2)
    with pytest.raises(ValueError, match="row 11"):
        facility_location_cmi(broken, QUERY, PRIVATE, 2)
