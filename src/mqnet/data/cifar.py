"""CIFAR-10 and CIFAR-100 in their official binary layout: labels and pixels as plain bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mqnet.data.archives import Remote, check_archive, find, read_members
from mqnet.data.images import ImagePool
from mqnet.data.junk import Places, open_junk
from mqnet.data.labelled import Dataset, Labelled
from mqnet.errors import InputError
from mqnet.registry import dataset

SIZE = 32
PIXELS = 3 * SIZE * SIZE


@dataclass(frozen=True)
class _Layout:
    """`n_labels` bytes, the last of them the class, then 3,072 pixels: red, green, blue."""

    name: str
    remote: Remote
    train: tuple[str, ...]
    test: tuple[str, ...]
    class_names: str
    n_labels: int
    n_classes: int


CIFAR10 = _Layout(
    "cifar10",
    Remote("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),
    tuple(f"data_batch_{i}.bin" for i in range(1, 6)), ("test_batch.bin",), "batches.meta.txt", 1, 10,
)  # fmt: skip
CIFAR100 = _Layout(
    "cifar100",
    Remote("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),
    ("train.bin",), ("test.bin",), "fine_label_names.txt", 2, 100,
)  # fmt: skip


@dataset("cifar10")
def cifar10(
    *, root: Path | None = None, download: bool = False, checksum: str | None = None, ood: Places = None
) -> Dataset:
    """CIFAR-10, binary version: 60,000 images of 32x32, 10 classes; a folder, the archive, or fetched."""
    return _open(CIFAR10, root, download, checksum, ood)


@dataset("cifar100")
def cifar100(
    *, root: Path | None = None, download: bool = False, checksum: str | None = None, ood: Places = None
) -> Dataset:
    """CIFAR-100, binary version: 60,000 images of 32x32, 100 classes; a folder, the archive, or fetched."""
    return _open(CIFAR100, root, download, checksum, ood)


def _open(layout: _Layout, root: Path | None, download: bool, checksum: str | None, ood: Places) -> Dataset:
    place = find(root, download, (layout.remote,), layout.name)
    check_archive(place, checksum, (layout.remote,))
    files = read_members(place, (*layout.train, *layout.test, layout.class_names), layout.name)
    names = tuple(line.strip() for line in files[layout.class_names].decode().splitlines() if line.strip())
    if len(names) != layout.n_classes or len(set(names)) < len(names):
        raise InputError(f"'{place}': {layout.class_names} names {len(names)} classes, not {layout.n_classes}.")
    parts = [
        _part(layout, [(name, files[name]) for name in wanted], which, place)
        for wanted, which in ((layout.train, "train"), (layout.test, "test"))
    ]
    return Dataset(parts[0], parts[1], names, open_junk(ood, SIZE))


def _part(layout: _Layout, files: list[tuple[str, bytes]], which: str, place: Path) -> Labelled:
    width = layout.n_labels + PIXELS
    for name, content in files:
        if not content or len(content) % width:
            raise InputError(
                f"'{name}' in '{place}' has {len(content):,} bytes, which is no whole number of records of {width:,}. "
                "Fetch it again."
            )
    records = np.concatenate([np.frombuffer(content, dtype=np.uint8).reshape(-1, width) for _, content in files])
    labels = records[:, layout.n_labels - 1].astype(np.int64)
    if labels.max() >= layout.n_classes:
        row = int(np.flatnonzero(labels >= layout.n_classes)[0])
        raise InputError(f"record {row} of {layout.name} ({which}) has the class {labels[row]}: is '{place}' whole?")
    images = np.ascontiguousarray(records[:, layout.n_labels :]).reshape(-1, 3, SIZE, SIZE)
    digits = len(str(len(labels)))
    ids = [f"{which}-{i:0{digits}d}" for i in range(len(labels))]
    return Labelled(ImagePool(images, ids, source=f"{layout.name} ({which})"), labels)
