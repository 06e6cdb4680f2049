"""Oracles: the truth, and mistakes at given rates that belong to the item."""

from __future__ import annotations

import numpy as np
import pytest

from mqnet.errors import ConfigError, PoolError
from mqnet.ids import ItemIds, RowNames
from mqnet.oracles.simulated import NoisyOracle, SimulatedOracle, Truth
from mqnet.rng import Key
from mqnet.types import OOD, Known, Oracle, Query

CLASSES = ("cat", "dog", "eel")
IDS = ItemIds(RowNames(12_000))
LABELS = np.arange(12_000) % 4 - 1
TRUTH = Truth(IDS, LABELS, CLASSES)
EVERYTHING = Query(0, tuple(IDS))


def test_the_truth() -> None:
    oracle = SimulatedOracle(TRUTH)
    assert isinstance(oracle, Oracle)
    assert oracle.collect(Query(1, ("00002", "00000", "00005"))) == {
        "00002": Known("dog"),
        "00000": OOD,
        "00005": Known("cat"),
    }
    assert oracle.collect(Query(1, ())) == {}


def test_the_truth_of_a_part_of_a_pool() -> None:
    part = IDS.take(np.asarray([7, 2, 9]))
    truth = Truth(part, np.asarray([0, -1, 2]), CLASSES)
    assert truth.of(["00009", "00007"]).tolist() == [2, 0]
    assert truth.of(part.sorted()).tolist() == [-1, 0, 2]
    assert truth.of(ItemIds.of(["00002"])).tolist() == [-1]
    # an item beside it is not junk: nobody knows what it is
    for item in ("00003", "11999"):
        with pytest.raises(PoolError, match=f"the truth of item '{item}' is not known"):
            truth.of(["00009", item])
        with pytest.raises(PoolError, match=f"'{item}'"):
            SimulatedOracle(truth).collect(Query(0, (item,)))
    with pytest.raises(PoolError, match="item 'zebra' is not in the pool"):
        truth.of(["zebra"])


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 3], [0, 1, -2], [[0, 1, 2]]])
def test_a_truth_that_cannot_be_is_refused(labels: list) -> None:
    with pytest.raises(ConfigError, match="the truth"):
        Truth(ItemIds.of(["a", "b", "c"]), np.asarray(labels), CLASSES)


@pytest.mark.parametrize(("confuses", "misses"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3), (0.1, 0.5), (1.0, 1.0)])
def test_rates(confuses: float, misses: float) -> None:
    answers = NoisyOracle(TRUTH, confuses, misses, Key(4)).collect(EVERYTHING)
    assert tuple(answers) == EVERYTHING.items
    given = np.asarray([CLASSES.index(a.name) if isinstance(a, Known) else -1 for a in answers.values()])
    known = LABELS >= 0
    assert not (given[known] < 0).any(), "a known item is confused with another class, never with junk"
    confused, missed = (given != LABELS)[known].mean(), (given != LABELS)[~known].mean()
    # five standard deviations of 9,000 and 3,000 draws
    assert abs(confused - confuses) <= 5 * (confuses * (1 - confuses) / 9000) ** 0.5
    assert abs(missed - misses) <= 5 * (misses * (1 - misses) / 3000) ** 0.5
    for label in range(3):
        wrong = given[(label == LABELS) & (given != label)]
        if confuses:
            shares = np.bincount(wrong, minlength=3) / len(wrong)
            assert abs(shares[(label + 1) % 3] - 0.5) < 0.15
    if misses:
        shares = np.bincount(given[~known & (given >= 0)], minlength=3) / (missed * 3000)
        assert np.abs(shares - 1 / 3).max() < 0.08


def test_a_mistake_belongs_to_the_item() -> None:
    oracle = NoisyOracle(TRUTH, 0.3, 0.3, Key(4))
    everything = oracle.collect(EVERYTHING)
    some = EVERYTHING.items[5000:4000:-3]
    assert dict(oracle.collect(Query(7, some))) == {item: everything[item] for item in some}
    order = np.random.Generator(np.random.PCG64(0)).permutation(12_000)
    shuffled = Truth(ItemIds.of([IDS[i] for i in order]), LABELS[order], CLASSES)
    assert dict(NoisyOracle(shuffled, 0.3, 0.3, Key(4)).collect(Query(0, some))) == {i: everything[i] for i in some}
    assert dict(NoisyOracle(TRUTH, 0.3, 0.3, Key(5)).collect(EVERYTHING)) != dict(everything)


def test_a_single_class_cannot_be_confused() -> None:
    truth = Truth(ItemIds.of(["a", "b"]), np.asarray([0, -1]), ("cat",))
    assert NoisyOracle(truth, 1.0, 1.0).collect(Query(0, ("a", "b"))) == {"a": Known("cat"), "b": Known("cat")}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_is_a_rate(rate: float) -> None:
    with pytest.raises(ConfigError, match="confuses_known"):
        NoisyOracle(TRUTH, confuses_known=rate)
    with pytest.raises(ConfigError, match="misses_ood"):
        NoisyOracle(TRUTH, misses_ood=rate)
