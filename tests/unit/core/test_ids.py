"""Item ids: strings for people, vectors for machines, the same items in both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqnet.errors import PoolError
from mqnet.ids import CHUNK, ItemIds, RowNames

NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1), unique=True)


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 100, 1001])
def test_row_numbers_are_strings_in_order(n: int) -> None:
    ids = ItemIds(RowNames(n))
    names = list(ids)
    assert names == sorted(names)
    assert len(set(names)) == len(ids) == n
    assert ids.find(names).tolist() == list(range(n))
    # the digits are hashed without making strings: it must be the same hash
    np.testing.assert_array_equal(ids.hashes(), ItemIds.of(names).hashes())


def test_hashes_across_chunks() -> None:
    ids = ItemIds(RowNames(CHUNK + 5))
    np.testing.assert_array_equal(ids.hashes()[-10:], ids.take(slice(CHUNK - 5, None)).hashes())
    assert ids[CHUNK] == f"{CHUNK:05d}"
    assert sum(1 for _ in ids) == CHUNK + 5


@pytest.mark.parametrize("name", ["7", "007", "20", "x1", "", "-1", "1 ", "٣١", "²5"])
def test_only_the_exact_row_name_is_found(name: str) -> None:
    with pytest.raises(PoolError, match=f"item '{name}' is not in the pool of 20 items"):
        ItemIds(RowNames(20)).find(["07", name])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "id 'a' stands at row 0 and again at row 2"),
        (["a", ""], "row 1: ''"),
        (["a\x00b"], "row 0"),
        (["a", 3], "row 1: 3"),
        (["a", None], "row 1: None"),
        ([b"a"], "row 0: b'a'"),
        (["ok", "\udcff.png"], "row 1"),
    ],
)
def test_unusable_ids_are_named(names: list, message: str) -> None:
    for look in (
        lambda ids: ids.find([]),
        lambda ids: ids.hashes(),
        lambda ids: ids.sorted(),
        lambda ids: ids.without([]),
    ):
        with pytest.raises(PoolError, match=message):
            look(ItemIds.of(names))


@given(NAMES)
def test_sorting_is_sorting(names: list[str]) -> None:
    assert list(ItemIds.of(names).sorted()) == sorted(names)


@given(NAMES.filter(bool), st.data())
def test_taking_and_leaving(names: list[str], data: st.DataObject) -> None:
    ids = ItemIds.of(names)
    some = data.draw(st.lists(st.sampled_from(names), unique=True))
    assert list(ids.select(some)) == some
    assert list(ids.without(some)) == [name for name in names if name not in some]
    assert list(ids.without(some).sorted()) == sorted(set(names) - set(some))
    rows = ids.find(some)
    assert list(ids.take(rows)) == some
    assert [ids[int(row)] for row in rows] == some
    assert list(ids[1:]) == names[1:]
    assert ids.select(some).rows_in(ids).tolist() == rows.tolist()
    # another pool with the same ids, in another order
    other = ItemIds.of(names[::-1])
    assert list(other.take(ids.select(some).rows_in(other))) == some
    np.testing.assert_array_equal(ids.select(some).hashes(), other.select(some).hashes())


def test_selections_of_selections() -> None:
    ids = ItemIds.of(["c", "a", "b", "e", "d"])
    some = ids.sorted().take(np.asarray([0, 3, 4]))
    assert list(some) == ["a", "d", "e"]
    assert list(some.without(["d"])) == ["a", "e"]
    assert list(some.take(slice(1, 9))) == ["d", "e"]
    assert some.rows.tolist() == [1, 4, 3]
    assert (len(some), some.n_in_pool) == (3, 5)
    assert [(piece, list(part)) for piece, part in some.chunks(2)] == [(slice(0, 2), ["a", "d"]), (slice(2, 3), ["e"])]
    with pytest.raises(PoolError, match="item 'z' is not in the pool of 5 items"):
        ids.without(["a", "z"])
    with pytest.raises(PoolError, match="'z'"):
        ItemIds.of(["a", "z"]).rows_in(ids)
    assert repr(ids) == "ItemIds(5: c, a, b, …)"


def test_an_empty_selection() -> None:
    ids = ItemIds.of([])
    assert (len(ids), list(ids), list(ids.sorted()), ids.hashes().tolist()) == (0, [], [], [])
    assert list(ItemIds.of(["a"]).take(slice(0, 0)).chunks(4)) == []
