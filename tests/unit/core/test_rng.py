"""Keyed randomness: a function of seed, purpose and item, of nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mqnet.ids import ItemIds, RowNames
from mqnet.rng import Key, hash_bytes

IDS = ItemIds(RowNames(20_000))
GOLDEN_INTEGER = 8_697_889_995_469_565_922
GOLDEN_UNIFORM = [0.9084062766852016, 0.5825306453960096]


def test_a_key_is_its_seed_and_path() -> None:
    assert Key(7).child("round", 3, "fit") == Key(7).child("round").child(3, "fit")
    numbers = [
        Key(seed).child(*path).integer()
        for seed in (0, 1, -1)
        for path in ((), ("a",), ("b",), ("a", "b"), ("ab",), (1,), ("1",), (1, 1), (11,))
    ]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number < 2**63 for number in numbers)


def test_keys_are_the_same_on_every_machine() -> None:
    # golden: a campaign moved to another machine must go on with the same draws
    assert Key(7).child("round", 3, "fit").integer() == GOLDEN_INTEGER
    np.testing.assert_allclose(Key(7).child("x").uniform(ItemIds.of(["a", "img_17.png"]).hashes()), GOLDEN_UNIFORM)


def test_streams_start_at_the_same_place() -> None:
    key = Key(3).child("fit")
    assert torch.equal(torch.rand(5, generator=key.torch()), torch.rand(5, generator=key.torch()))
    np.testing.assert_array_equal(key.numpy().random(5), key.numpy().random(5))
    assert not np.array_equal(key.numpy().random(5), Key(3).child("select").numpy().random(5))


@given(st.permutations(range(50)))
def test_an_items_number_is_its_own(order: list[int]) -> None:
    names = [f"item {i}" for i in range(50)]
    straight = dict(zip(names, Key(1).uniform(ItemIds.of(names).hashes()), strict=True))
    shuffled = [names[i] for i in order][:30]
    numbers = Key(1).uniform(ItemIds.of(shuffled).hashes())
    assert dict(zip(shuffled, numbers, strict=True)) == {name: straight[name] for name in shuffled}


@pytest.mark.parametrize("purpose", ["initial", "select"])
def test_uniform_is_uniform(purpose: str) -> None:
    numbers = Key(0).child(purpose).uniform(IDS.hashes())
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    assert len(np.unique(numbers)) == len(numbers)
    counts = np.histogram(numbers, bins=100, range=(0, 1))[0]
    chi_square = ((counts - 200) ** 2 / 200).sum()
    assert 55 < chi_square < 160  # 99 degrees of freedom: outside with probability below 1e-4
    # neighbours in the pool are no neighbours here
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.03


def test_purposes_and_seeds_are_unrelated() -> None:
    hashes = IDS.hashes()
    streams = [Key(s).child(p).uniform(hashes) for s in range(3) for p in ("a", "b", "c")]
    correlations = np.corrcoef(streams)[np.triu_indices(9, 1)]
    assert np.abs(correlations).max() < 0.035


def test_hashes_ignore_padding_alone() -> None:
    rows = np.asarray([b"a", b"ab", b"abcdefgh", b"abcdefghi", b"", b"b", b"ba"])
    packed = rows.view(np.uint8).reshape(len(rows), -1)
    wide = np.pad(packed, ((0, 0), (0, 23)))
    np.testing.assert_array_equal(hash_bytes(packed), hash_bytes(wide))
    assert len(np.unique(hash_bytes(packed))) == len(rows)


@given(st.sets(st.binary(min_size=1, max_size=20).filter(lambda b: b[-1] != 0 and b"\x00" not in b), min_size=2))
def test_hashes_of_different_strings_differ(strings: set[bytes]) -> None:
    packed = np.asarray(sorted(strings), dtype=np.bytes_)
    assert len(np.unique(hash_bytes(packed.view(np.uint8).reshape(len(packed), -1)))) == len(strings)
