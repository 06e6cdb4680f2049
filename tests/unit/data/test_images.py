"""Pools of images, and scenarios over them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from mqnet.data.images import ImagePool, open_array
from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.pools import ArrayPool
from mqnet.data.scenarios import cross, split
from mqnet.errors import PoolError
from mqnet.loop.opening import as_pool


def _pictures(n: int, first: int, size: int = 4) -> np.ndarray:
    """Pictures that say which item they are: red is the item's number, less 256 where green is 1."""
    out = np.zeros((n, 3, size, size), dtype=np.uint8)
    numbers = first + np.arange(n)
    out[:, 0], out[:, 1] = (numbers % 256)[:, None, None], (numbers // 256)[:, None, None]
    return out


def _numbers(images: torch.Tensor) -> list[int]:
    return (images[:, 0, 0, 0].int() + 256 * images[:, 1, 0, 0].int()).tolist()


def test_images_come_in_the_order_asked_for() -> None:
    pool = ImagePool(_pictures(5, 0), ["e", "d", "c", "b", "a"])
    assert _numbers(pool.load(pool.ids.select(["a", "e", "c"]))) == [4, 0, 2]
    assert pool.load(pool.ids).shape == (5, 3, 4, 4)
    assert pool.load(pool.ids).dtype == torch.uint8
    some = pool.subset(pool.ids.select(["b", "d"]))
    assert (list(some.ids), _numbers(some.load(some.ids))) == (["b", "d"], [3, 1])
    assert _numbers(some.load(some.ids.take(slice(1, 2)))) == [1]


def test_a_copy_is_loaded_never_the_pool_itself() -> None:
    pool = ImagePool(_pictures(3, 0))
    pool.load(pool.ids)[:] = 7
    assert _numbers(pool.load(pool.ids)) == [0, 1, 2]


def test_the_fingerprint_is_of_ids_and_pixels(tmp_path: Path) -> None:
    images = _pictures(6, 0)
    pool = ImagePool(images, list("abcdef"))
    turned = ImagePool(images[::-1].copy(), list("fedcba"))
    assert pool.fingerprint() == turned.fingerprint()
    assert ImagePool(images, list("abcdeg")).fingerprint() != pool.fingerprint()
    other = images.copy()
    other[5, 2, 3, 3] += 1
    assert ImagePool(other, list("abcdef")).fingerprint() != pool.fingerprint()
    np.save(tmp_path / "p.npy", images)
    mapped = as_pool(tmp_path / "p.npy")
    assert isinstance(mapped, ImagePool)
    assert mapped.fingerprint() == ImagePool(images).fingerprint() == as_pool(images).fingerprint()
    assert isinstance(open_array(tmp_path / "p.npy").load(mapped.ids), torch.Tensor)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 3, 4, 4), dtype=np.float32), "images are uint8"),
        (np.zeros((2, 4, 4, 3), dtype=np.uint8), r"\[N, 3, S, S\]"),
        (np.zeros((2, 3, 4, 5), dtype=np.uint8), "square"),
    ],
)
def test_what_is_no_pool_of_images_is_refused(images: np.ndarray, message: str) -> None:
    with pytest.raises(PoolError, match=message):
        ImagePool(images)
    with pytest.raises(PoolError, match="3 ids were given"):
        ImagePool(_pictures(2, 0), ["a", "b", "c"])


def _data(junk: int) -> Dataset:
    labels = np.tile(np.arange(4), 20)
    return Dataset(
        Labelled(ImagePool(_pictures(80, 0)), labels),
        Labelled(ImagePool(_pictures(40, 100)), labels[:40]),
        tuple("abcd"),
        ImagePool(_pictures(junk, 300)) if junk else None,
    )


def test_a_split_of_images() -> None:
    found = split(_data(0), seed=1, ood_share=0.25, known_classes=2)
    numbers = _numbers(found.pool.load(found.pool.ids))
    assert max(numbers) < 80
    assert [("abcd")[n % 4] if label >= 0 else None for n, label in zip(numbers, found.labels, strict=True)] == [
        found.classes[label] if label >= 0 else None for label in found.labels
    ]
    assert (len(numbers), int((found.labels < 0).sum())) == (53, 13)


def test_a_cross_of_images_mixes_without_copying() -> None:
    found = cross(_data(200), seed=3, ood_share=0.5)
    numbers = np.asarray(_numbers(found.pool.load(found.pool.ids)))
    assert len(set(numbers.tolist())) == len(numbers) == 160
    assert ((numbers >= 300) == (found.labels < 0)).all()
    assert (numbers[found.labels >= 0] % 4 == found.labels[found.labels >= 0]).all()
    part = found.pool.ids.take(np.asarray([5, 150, 2]))
    assert _numbers(found.pool.load(part)) == numbers[[5, 150, 2]].tolist()
    one = found.pool.subset(part)
    assert _numbers(one.load(one.ids)) == numbers[[5, 150, 2]].tolist()
    assert one.load(one.ids.take(slice(0, 0))).shape == (0, 3, 4, 4)


def test_a_mixed_pool_is_the_pool_it_would_be_as_one_array() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float16)
    data = Dataset(
        Labelled(ArrayPool(vectors[:20]), np.zeros(20, dtype=np.int64)),
        Labelled(ArrayPool(vectors[:1]), np.zeros(1, dtype=np.int64)),
        ("a",),
        ArrayPool(vectors[20:]),
    )
    found = cross(data, seed=0, ood_share=0.25, pool_size=16).pool
    assert ArrayPool(found.load(found.ids)).fingerprint() == found.fingerprint()
    pictures = cross(_data(200), seed=3, ood_share=0.5).pool
    assert ImagePool(pictures.load(pictures.ids)).fingerprint() == pictures.fingerprint()
