"""D^2 sampling on factored embeddings makes the picks of the sampler on materialised ones, from the same draws."""

from __future__ import annotations

import pytest
import torch
from benchmarks.reference.kmeanspp import embed, k_means_plus_plus_plain
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mqnet.numerics import kmeanspp
from mqnet.numerics.gradients import output_gradients
from mqnet.numerics.kmeanspp import k_means_plus_plus


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def factors(n: int, n_classes: int, d: int, scale: float = 3.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = stream(seed)
    logits = scale * torch.randn(n, n_classes, generator=generator)
    return output_gradients(logits), torch.relu(torch.randn(n, d, generator=generator))


def same_as_plain(a: Tensor, h: Tensor, k: int, seed: int = 0) -> list[int]:
    picks = k_means_plus_plus(a, h, k, stream(seed)).tolist()
    assert picks == k_means_plus_plus_plain(a, h, k, stream(seed))
    assert len(set(picks)) == len(picks) == min(k, len(a))
    return picks


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 30.0])
@pytest.mark.parametrize("n_classes", [1, 2, 10])
def test_random_items(scale: float, n_classes: int) -> None:
    for seed in range(3):
        same_as_plain(*factors(600, n_classes, 12, scale, seed), 150, seed)


def test_half_precision() -> None:
    a, h = factors(300, 4, 8)
    same_as_plain(a.half(), h.half(), 60)


def test_duplicates_and_zero_vectors() -> None:
    a, h = factors(20, 3, 5)
    a, h = a.repeat(4, 1), h.repeat(4, 1)
    h[7] = 0.0
    picks = same_as_plain(a, h, 80)
    values = embed(a, h)
    n_different = len(values.unique(dim=0))
    assert len(values[picks[:n_different]].unique(dim=0)) == n_different  # every value once before any value twice
    assert picks[n_different:] == sorted(picks[n_different:])  # then the lowest rows left


def test_all_items_equal() -> None:
    assert same_as_plain(torch.ones(6, 2), torch.ones(6, 3), 4) == [0, 1, 2, 3]
    assert same_as_plain(torch.zeros(6, 2), torch.ones(6, 3), 9) == [0, 1, 2, 3, 4, 5]


def test_first_pick_is_the_longest_embedding() -> None:
    a = torch.tensor([[1.0, 0.0], [3.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    h = torch.tensor([[5.0], [2.0], [1.0], [2.0]])
    assert k_means_plus_plus(a, h, 1, stream(0)).tolist() == [1]  # lengths 5, 6, sqrt 2, 6: the lower of the two 6s


def test_draws_follow_squared_distances() -> None:
    # Distances to the longest item (at 10): 9^2, 5^2, 1^2, 0. The second pick is drawn in these proportions.
    a, h = torch.ones(4, 1), torch.tensor([[1.0], [5.0], [9.0], [10.0]])
    seconds = torch.tensor([int(k_means_plus_plus(a, h, 2, stream(seed))[1]) for seed in range(2000)])
    shares = torch.bincount(seconds, minlength=4) / 2000
    torch.testing.assert_close(shares, torch.tensor([81.0, 25.0, 1.0, 0.0]) / 107, atol=0.03, rtol=0)


def test_rejection_keeps_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Third picks with frozen weights are distributed as third picks with weights taken again after each pick."""
    a, h = torch.ones(6, 1), torch.tensor([[0.0], [1.0], [2.0], [6.0], [7.0], [9.0]])

    def thirds() -> Tensor:
        rows = [int(k_means_plus_plus(a, h, 3, stream(seed))[2]) for seed in range(4000)]
        return torch.bincount(torch.tensor(rows), minlength=6) / 4000

    frozen = thirds()
    monkeypatch.setattr(kmeanspp, "REFRESH_PICKS", 1)
    torch.testing.assert_close(frozen, thirds(), atol=0.035, rtol=0)


def test_a_shorter_query_is_a_prefix() -> None:
    a, h = factors(500, 4, 6, scale=1.0)
    whole = k_means_plus_plus(a, h, 300, stream(4)).tolist()
    for k in (0, 1, 2, 47, 48, 49, 50, 97, 299):
        assert k_means_plus_plus(a, h, k, stream(4)).tolist() == whole[:k]


@settings(deadline=None, max_examples=100)
@given(
    n=st.integers(1, 40), n_classes=st.integers(1, 3), d=st.integers(1, 3), k=st.integers(0, 50),
    levels=st.integers(0, 2), seed=st.integers(0, 10_000),
)  # fmt: skip
def test_lattice_points(n: int, n_classes: int, d: int, k: int, levels: int, seed: int) -> None:
    generator = stream(seed)
    a = torch.randint(-levels, levels + 1, (n, n_classes), generator=generator).float()
    h = torch.randint(-levels, levels + 1, (n, d), generator=generator).float()
    same_as_plain(a, h, k, seed)


def test_output_gradients() -> None:
    logits = torch.tensor([[0.0, 0.0], [2.0, -1.0], [-60.0, 60.0]])
    p = torch.sigmoid(torch.tensor(3.0))
    expected = torch.stack([torch.tensor([-0.5, 0.5]), torch.stack([p - 1, 1 - p]), torch.zeros(2)])
    torch.testing.assert_close(output_gradients(logits), expected)
    torch.testing.assert_close(output_gradients(logits[:1], torch.tensor([1])), torch.tensor([[0.5, -0.5]]))
    assert output_gradients(torch.tensor([[0.0, 40.0]]))[0, 1] < 0  # p rounds to 1, the gradient does not vanish


def test_what_is_refused() -> None:
    a, h = factors(9, 3, 4)
    with pytest.raises(ValueError, match="9 rows and h has 8"):
        k_means_plus_plus(a, h[:8], 2, stream(0))
    h[4, 0] = float("nan")
    with pytest.raises(ValueError, match="row 4"):
        k_means_plus_plus(a, h, 2, stream(0))
