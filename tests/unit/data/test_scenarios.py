"""Scenarios: what is in the pool, how much of it is junk, and what nobody can tell from outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mqnet.data.digits import digits
from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.pools import ArrayPool
from mqnet.data.scenarios import Scenario, composition, cross, mismatch, split
from mqnet.errors import ConfigError

N_CLASSES, PER_CLASS = 5, 40


def _data(*, junk: int = 0, marks: bool = True) -> Dataset:
    """Every vector says which item it is: (class, number within the class); test items count from 1000, junk is -1."""

    def part(first: int) -> Labelled:
        labels = np.tile(np.arange(N_CLASSES), PER_CLASS)
        vectors = np.stack([labels, first + np.arange(len(labels)) // N_CLASSES], axis=1).astype(np.float32)
        return Labelled(ArrayPool(vectors), labels)

    outside = np.stack([np.full(junk, -1), np.arange(junk)], axis=1).astype(np.float32) if junk else None
    classes = tuple("abcde")
    return Dataset(part(0), part(1000), classes, ArrayPool(outside) if outside is not None else None)


def _rows(pool: ArrayPool) -> np.ndarray:
    return pool.load(pool.ids).numpy()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.4, 0.5])
def test_all_known_items_and_junk_to_the_nearest_item(share: float) -> None:
    found = split(_data(), seed=3, ood_share=share, known_classes=2)
    classes, n_known = [("abcde").index(name) for name in found.classes], 2 * PER_CLASS
    original = _rows(found.pool)[:, 0].astype(int)
    expected = [classes.index(c) if c in classes else -1 for c in original]
    assert found.labels.tolist() == expected
    assert [int((found.labels == i).sum()) for i in range(2)] == [PER_CLASS, PER_CLASS]
    n_junk = int((found.labels < 0).sum())
    assert abs(n_junk - share * (n_known + n_junk)) <= 0.5
    assert len({tuple(row) for row in _rows(found.pool).tolist()}) == len(found.labels)


def test_test_items_are_of_the_known_classes_and_never_in_the_pool() -> None:
    found = split(_data(), seed=1, ood_share=0.4, known_class_share=0.6)
    assert len(found.classes) == 3
    tested = _rows(found.test.pool)
    assert {("abcde")[int(c)] for c in tested[:, 0]} == set(found.classes)
    assert [found.classes[label] for label in found.test.labels] == [("abcde")[int(c)] for c in tested[:, 0]]
    assert len(tested) == 3 * PER_CLASS
    assert tested[:, 1].min() >= 1000 > _rows(found.pool)[:, 1].max()


def test_digits_keep_their_test_items_apart() -> None:
    data = digits()
    assert (len(data.train.labels), len(data.test.labels)) == (1258, 539)
    pools = [{row.tobytes() for row in _rows(part.pool)} for part in (data.train, data.test)]
    assert not pools[0] & pools[1]
    assert set(data.train.labels) == set(data.test.labels) == set(range(10))
    assert digits().fingerprint() == data.fingerprint()


def test_a_pool_of_given_size_has_the_same_share() -> None:
    found = split(_data(), seed=0, ood_share=0.3, known_classes=3, pool_size=50)
    assert (len(found.labels), int((found.labels < 0).sum())) == (50, 15)
    capped = split(_data(), seed=0, ood_share=0.3, known_classes=3, pool_size=10_000)
    whole = split(_data(), seed=0, ood_share=0.3, known_classes=3)
    assert capped.pool.fingerprint() == whole.pool.fingerprint()


def _held(found: Scenario) -> set[tuple[float, ...]]:
    assert found.reserved is not None
    return {tuple(row) for row in _rows(found.reserved.pool).tolist()}


def test_a_reserve_leaves_the_pool_alone_where_enough_is_left_over() -> None:
    options = {"seed": 4, "ood_share": 0.4, "known_classes": 2, "pool_size": 100}
    alone, beside = split(_data(), **options), split(_data(), **options, reserve=30)
    assert beside.pool.fingerprint() == alone.pool.fingerprint()  # 60 + 18 of 80 known items, 40 + 12 of 120 others
    assert alone.reserved is None
    assert (len(beside.reserved.labels), int((beside.reserved.labels < 0).sum())) == (30, 12)
    assert not _held(beside) & {tuple(row) for row in _rows(beside.pool).tolist()}


@pytest.mark.parametrize("pool_size", [None, 130])
def test_a_reserve_is_taken_before_the_pool_where_too_few_are_left_over(pool_size: int | None) -> None:
    options = {"seed": 4, "ood_share": 0.4, "known_classes": 2, "pool_size": pool_size}
    alone, beside = split(_data(), **options), split(_data(), **options, reserve=30)
    rows = {tuple(row) for row in _rows(beside.pool).tolist()}
    assert rows < {tuple(row) for row in _rows(alone.pool).tolist()}
    assert not _held(beside) & rows
    # 62 of 80 known items are left for the pool, and junk at its share: 62 / 0.6 items
    assert (len(beside.labels), int((beside.labels < 0).sum())) == (103, 41)
    original = _rows(beside.reserved.pool)[:, 0].astype(int)
    expected = [beside.classes.index("abcde"[c]) if "abcde"[c] in beside.classes else -1 for c in original]
    assert beside.reserved.labels.tolist() == expected


def test_a_reserve_that_leaves_no_pool_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"takes 84 known and 56 junk items, but the data has 80 and 120"):
        split(_data(), seed=0, ood_share=0.4, known_classes=2, reserve=140)


def test_a_seed_gives_the_same_scenario_again_and_another_one_another() -> None:
    same = [split(_data(), seed=7, ood_share=0.4, known_classes=2) for _ in range(2)]
    assert same[0].classes == same[1].classes
    assert same[0].pool.fingerprint() == same[1].pool.fingerprint()
    drawn = {split(_data(), seed=seed, ood_share=0.4, known_classes=2).classes for seed in range(40)}
    assert len(drawn) == 10  # all pairs of five classes come up


def test_shares_differ_in_their_junk_alone() -> None:
    few, many = (split(_data(), seed=2, ood_share=share, known_classes=2) for share in (0.1, 0.4))
    assert few.classes == many.classes
    known = [
        {tuple(row) for row, label in zip(_rows(s.pool).tolist(), s.labels, strict=True) if label >= 0}
        for s in (few, many)
    ]
    assert known[0] == known[1]


def test_junk_comes_from_all_other_classes() -> None:
    found = split(_data(), seed=0, ood_share=0.5, known_classes=2)
    junk = _rows(found.pool)[found.labels < 0, 0]
    assert len(set(junk.tolist())) == 3


@given(
    n_known=st.integers(1, 500), n_junk=st.integers(0, 500), share=st.floats(0, 0.95),
    size=st.one_of(st.none(), st.integers(1, 1200)),
)  # fmt: skip
def test_composition_uses_what_there_is_and_its_advice_works(
    n_known: int, n_junk: int, share: float, size: int | None
) -> None:
    try:
        n_in, n_out = composition(n_known, n_junk, share, size)
    except ConfigError as error:
        advice = int(str(error).split("at most ")[1].rstrip(".")) if "at most" in str(error) else 0
        if advice:
            assert sum(composition(n_known, n_junk, share, advice)) == advice
        return
    assert 0 <= n_in <= n_known
    assert 0 <= n_out <= n_junk
    assert abs(n_out - share * (n_in + n_out)) <= 0.5 + 1e-9
    if size is None:
        assert n_in == n_known
    else:
        assert n_in == n_known or n_in + n_out == size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ood_share": 0.8, "known_classes": 4}, "takes 640 junk items, but the data has 40"),
        ({"ood_share": 0.1, "known_classes": 5}, "but the data has 0"),
        ({"ood_share": 1.0, "known_classes": 2}, "must be at least 0 and below 1"),
        ({"ood_share": 0.2, "known_classes": 6}, "known_classes = 6 asks for 6 known classes of the data set's 5"),
        ({"ood_share": 0.2, "known_class_share": 0.05}, "known_class_share = 0.05 asks for 0"),
        ({"ood_share": 0.2}, "either known_classes or known_class_share"),
        ({"ood_share": 0.2, "known_classes": 2, "known_class_share": 0.4}, "either known_classes or known_class_share"),
        ({"ood_share": 0.2, "known_classes": 2, "pool_size": 0}, "a pool has at least one item"),
    ],
)
def test_what_the_data_cannot_provide_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        split(_data(), seed=0, **options)


def test_all_classes_may_be_known_without_junk() -> None:
    found = split(_data(), seed=0, ood_share=0.0, known_classes=5)
    assert found.classes == tuple("abcde")
    assert len(found.labels) == N_CLASSES * PER_CLASS


def test_cross_knows_all_classes_and_takes_junk_from_elsewhere() -> None:
    found = cross(_data(junk=100), seed=0, ood_share=0.25, pool_size=80)
    assert found.classes == tuple("abcde")
    assert (len(found.labels), int((found.labels < 0).sum())) == (80, 20)
    assert found.labels.tolist() == _rows(found.pool)[:, 0].astype(int).tolist()
    assert len(found.test.labels) == N_CLASSES * PER_CLASS
    assert cross(_data(junk=100), seed=0, ood_share=0.0).labels.min() == 0
    with pytest.raises(ConfigError, match="needs `ood`"):
        cross(_data(), seed=0, ood_share=0.25)


def test_ids_of_a_cross_pool_tell_nothing() -> None:
    found = cross(_data(junk=200), seed=5, ood_share=0.5)
    assert list(found.pool.ids) == [f"{i:03d}" for i in range(400)]
    place = np.flatnonzero(found.labels < 0)
    # the mean place of 200 junk items among 400 is 199.5, give or take 4 standard errors of 5.8
    assert abs(place.mean() - 199.5) < 4 * 5.8


def test_the_junk_belongs_to_the_fingerprint() -> None:
    prints = {_data(junk=junk).fingerprint() for junk in (0, 50, 51)}
    assert len(prints) == 3


def _uneven() -> Dataset:
    """Classes of 10, 20, 30, 40, 50 training items, whose vectors say which item they are; test items from 1000."""
    labels = np.repeat(np.arange(5), [10, 20, 30, 40, 50])
    vectors = np.stack([labels, np.arange(len(labels))], axis=1).astype(np.float32)
    test = Labelled(ArrayPool(vectors + np.array([0, 1000], dtype=np.float32)), labels)
    return Dataset(Labelled(ArrayPool(vectors), labels), test, tuple("abcde"))


@pytest.mark.parametrize("seed", range(4))
def test_mismatch_holds_every_item_and_labels_of_known_classes_alone(seed: int) -> None:
    found = mismatch(_uneven(), seed=seed, known_classes=2, initial_share=0.1)
    original = _rows(found.pool)[:, 0].astype(int)
    assert np.bincount(original).tolist() == [10, 20, 30, 40, 50]
    known = ["abcde".index(name) for name in found.classes]
    assert found.labels.tolist() == [known.index(c) if c in known else -1 for c in original]
    assert found.initial is not None
    started = _rows_of(found.pool, found.initial)[:, 0].astype(int)
    # 10% of each known class to the nearest item: 1 to 5 of 10 to 50
    assert {c: int((started == c).sum()) for c in range(5)} == {c: (c + 1 if c in known else 0) for c in range(5)}
    assert len(set(found.initial)) == len(found.initial)
    assert _rows(found.test.pool)[:, 1].min() >= 1000 > _rows(found.pool)[:, 1].max()


def test_mismatch_labels_one_of_each_class_at_least_and_the_same_again() -> None:
    first, again = (mismatch(_uneven(), seed=5, known_class_share=0.6, initial_share=0.001) for _ in range(2))
    assert first.initial is not None
    assert again.initial is not None
    assert len(first.initial) == 3
    assert list(first.initial) == list(again.initial)
    assert list(first.initial) != list(mismatch(_uneven(), seed=6, known_class_share=0.6, initial_share=0.001).initial)


def test_a_smaller_mismatch_keeps_the_share() -> None:
    whole, small = (mismatch(_uneven(), seed=1, known_classes=2, pool_size=size) for size in (None, 60))
    share = float((whole.labels < 0).mean())
    assert len(small.labels) == 60
    assert abs(int((small.labels < 0).sum()) - 60 * share) <= 0.5
    with pytest.raises(ConfigError, match="knows some of the classes only"):
        mismatch(_uneven(), seed=1, known_classes=5)
    with pytest.raises(ConfigError, match="'mismatch' takes either"):
        mismatch(_uneven(), seed=1)


def test_whole_classes_as_junk() -> None:
    seen = set()
    for seed in range(12):
        found = split(_uneven(), seed=seed, known_classes=2, ood_classes=2)
        counts = np.bincount(_rows(found.pool)[:, 0].astype(int), minlength=5)
        there = {c for c in range(5) if counts[c]}
        assert len(there) == 4
        assert all(counts[c] == 10 * (c + 1) for c in there)
        known = {"abcde".index(name) for name in found.classes}
        assert known < there
        assert int((found.labels < 0).sum()) == sum(10 * (c + 1) for c in there - known)
        seen.add(frozenset(there - known))
    assert len(seen) > 3
    # the known classes are those of the same seed without
    assert found.classes == split(_uneven(), seed=11, ood_share=0.1, known_classes=2).classes


def _rows_of(pool: ArrayPool, ids: object) -> np.ndarray:
    return pool.load(ids).numpy()  # type: ignore[arg-type]


KINDS = {
    "split": lambda data, seed: split(data, seed=seed, ood_share=0.3, known_class_share=0.4),
    "whole classes": lambda data, seed: split(data, seed=seed, known_classes=2, ood_classes=2),
    "mismatch": lambda data, seed: mismatch(data, seed=seed, known_class_share=0.4, initial_share=0.2),
    "cross": lambda data, seed: cross(data, seed=seed, ood_share=0.3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_composition_of_digits(kind: str) -> None:
    data = digits()
    if kind == "cross":
        data = Dataset(data.train, data.test, data.classes, ArrayPool(np.full((700, 64), 99.0, dtype=np.float32)))
    _check(data, KINDS[kind](data, 1), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_composition_of_image_folders(kind: str, tmp_path: Path) -> None:
    from mqnet.data.image_folders import image_folder

    draw = np.random.default_rng(0)
    for part, n in (("train", 12), ("test", 4)):
        for k, name in enumerate("abcde"):
            (tmp_path / "set" / part / name).mkdir(parents=True)
            for i in range(n + 2 * k):
                picture = draw.integers(0, 256, (8, 8, 3), dtype=np.uint8)
                Image.fromarray(picture).save(tmp_path / "set" / part / name / f"{i}.png")
    (tmp_path / "junk").mkdir()
    for i in range(60):
        Image.fromarray(draw.integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(tmp_path / "junk" / f"{i}.png")
    data = image_folder(root=tmp_path / "set", size=8, ood=tmp_path / "junk" if kind == "cross" else None)
    _check(data, KINDS[kind](data, 1), kind)


@pytest.mark.data
@pytest.mark.parametrize("kind", KINDS)
def test_composition_of_embeddings(kind: str, data_folder: Path) -> None:
    from mqnet.data.embeddings import embeddings

    folder = data_folder / "embeddings"
    data = embeddings(
        train=folder / "cifar10_train.npy", train_labels=folder / "cifar10_train_labels.npy",
        test=folder / "cifar10_test.npy", test_labels=folder / "cifar10_test_labels.npy",
        ood=folder / "places_ood.npy" if kind == "cross" else None,
    )  # fmt: skip
    if kind == "cross":  # all 50,000 items would ask for more junk than there is
        few = data.train.pool.ids.take(np.arange(10_000))
        data = Dataset(
            Labelled(data.train.pool.subset(few), data.train.labels[:10_000]), data.test, data.classes, data.junk
        )
    _check(data, KINDS[kind](data, 1), kind)


def _check(data: Dataset, found: Scenario, kind: str) -> None:
    """Counts per class, the share to the nearest item, test items apart: whatever the items are."""
    names = list(data.classes)
    known = [names.index(name) for name in found.classes]
    sizes = np.bincount(data.train.labels, minlength=len(names))
    n_junk = int((found.labels < 0).sum())
    assert [int((found.labels == i).sum()) for i in range(len(known))] == [int(sizes[c]) for c in known]
    if kind in ("split", "cross"):
        assert abs(n_junk - 0.3 * len(found.labels)) <= 0.5
    elif kind == "mismatch":
        assert n_junk == sizes.sum() - sizes[known].sum()
        assert found.initial is not None
        started = found.labels[found.initial.rows_in(found.pool.ids)]
        assert [int((started == i).sum()) for i in range(len(known))] == [max(1, round(0.2 * sizes[c])) for c in known]
    content = [hash(row.tobytes()) for row in found.pool.load(found.pool.ids).numpy()]
    tested = {hash(row.tobytes()) for row in found.test.pool.load(found.test.pool.ids).numpy()}
    assert not tested & set(content)
    whole = data.train.pool.load(data.train.pool.ids).numpy()
    class_of = {hash(row.tobytes()): int(label) for row, label in zip(whole, data.train.labels, strict=True)}
    for mark, label in zip(content, found.labels.tolist(), strict=True):
        assert (class_of.get(mark) == known[label]) if label >= 0 else (class_of.get(mark) not in known)
    assert len(found.test.labels) == int(np.isin(data.test.labels, known).sum())
