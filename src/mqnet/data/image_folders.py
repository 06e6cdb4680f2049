"""Folders of images as labelled data sets: your own, and ImageNet, Tiny-ImageNet, Places365 and LSUN as unpacked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mqnet.data.archives import Remote, as_folder, check_archive, find
from mqnet.data.files import FilePool
from mqnet.data.junk import Places, open_junk
from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.sources import image_refs
from mqnet.errors import InputError
from mqnet.registry import dataset
from mqnet.rng import Key

TEST_FOLDERS = ("test", "val", "validation")
TINY_IMAGENET = Remote("http://cs231n.stanford.edu/tiny-imagenet-200.zip", "md5:90528d7ca1a48142e341f4ef8d21d0de")


@dataset("image-folder")
def image_folder(
    *,
    root: Path | None = None,
    checksum: str | None = None,
    size: int = 32,
    test_share: float = 0.2,
    split_seed: int = 0,
    ood: Places = None,
) -> Dataset:
    """Images of your own, a folder for each class; `train` and `test` folders, or a split by seed."""
    return _open("image-folder", root, checksum, size, test_share, split_seed, ood)


@dataset("imagenet")
def imagenet(*, root: Path | None = None, size: int = 224, ood: Places = None) -> Dataset:
    """ImageNet as unpacked: `train/n01440764/…`, `val/n01440764/…`."""
    return _open("imagenet", root, None, size, 0.0, 0, ood)


@dataset("imagenet50")
def imagenet50(*, root: Path | None = None, size: int = 224, class_seed: int = 0, ood: Places = None) -> Dataset:
    """50 of ImageNet's classes, drawn by seed: the known classes of the cross-dataset setup."""
    return _open("imagenet50", root, None, size, 0.0, 0, ood, n_classes=50, class_seed=class_seed)


@dataset("places365")
def places365(
    *, root: Path | None = None, size: int = 32, test_share: float = 0.2, split_seed: int = 0, ood: Places = None
) -> Dataset:
    """Places365 as unpacked: `train/<scene>/…`, `val/<scene>/…`, or a folder for each scene."""
    return _open("places365", root, None, size, test_share, split_seed, ood)


@dataset("lsun")
def lsun(
    *, root: Path | None = None, size: int = 32, test_share: float = 0.2, split_seed: int = 0, ood: Places = None
) -> Dataset:
    """LSUN exported to images: a folder for each scene."""
    return _open("lsun", root, None, size, test_share, split_seed, ood)


@dataset("tiny-imagenet")
def tiny_imagenet(
    *,
    root: Path | None = None,
    download: bool = False,
    checksum: str | None = None,
    size: int = 64,
    ood: Places = None,
) -> Dataset:
    """Tiny-ImageNet: 110,000 images of 64x64, 200 classes; the folder, the archive, or fetched."""
    place = find(root, download, (TINY_IMAGENET,), "tiny-imagenet")
    check_archive(place, checksum, (TINY_IMAGENET,))
    folder = _down(as_folder(place), "wnids.txt")
    classes = tuple((folder / "wnids.txt").read_text().split())
    train = _by_class(folder / "train", classes)
    notes = folder / "val" / "val_annotations.txt"
    if not notes.is_file():
        raise InputError(f"'{place}' is not Tiny-ImageNet: there is no val/val_annotations.txt in it.")
    number = {name: i for i, name in enumerate(classes)}
    fields = [line.split("\t") for line in notes.read_text().splitlines() if line]
    lines = [(found[0], found[1]) for found in fields]
    strange = next((name for _, name in lines if name not in number), None)
    if strange is not None:
        raise InputError(f"'{notes}' names the class '{strange}', which wnids.txt does not.")
    held_out = _Files([f"images/{name}" for name, _ in lines], np.asarray([number[label] for _, label in lines]))
    return Dataset(
        _labelled(folder / "train", train, size), _labelled(folder / "val", held_out, size), classes,
        open_junk(ood, size),
    )  # fmt: skip


@dataclass(frozen=True)
class _Files:
    """Image files relative to a folder, and their classes."""

    refs: Sequence[str]
    labels: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> _Files:
        return _Files([self.refs[int(row)] for row in rows], self.labels[rows])


def _open(
    name: str, root: Path | None, checksum: str | None, size: int, test_share: float, split_seed: int, ood: Places,
    *, n_classes: int | None = None, class_seed: int = 0,
) -> Dataset:  # fmt: skip
    place = find(root, False, (), name)
    check_archive(place, checksum, ())
    folder = as_folder(place)
    train_folder, test_folder = _split_folders(folder)
    classes = _class_names(train_folder)
    if n_classes is not None:
        if n_classes > len(classes):
            raise InputError(f"'{place}' has {len(classes)} classes; {n_classes} are wanted.")
        drawn = Key(class_seed).child("dataset", name).numpy().permutation(len(classes))[:n_classes]
        classes = tuple(classes[i] for i in sorted(drawn.tolist()))
    train = _by_class(train_folder, classes)
    if test_folder is not None:
        if n_classes is None:
            unknown = sorted(set(_class_names(test_folder)) - set(classes))
            if unknown:
                raise InputError(f"'{test_folder}' has the class '{unknown[0]}', of which '{train_folder}' has none.")
        held_out = _by_class(test_folder, classes)
        parts = _labelled(train_folder, train, size), _labelled(test_folder, held_out, size)
    else:
        rows = _held_out(train.labels, test_share, split_seed, place)
        inside = np.setdiff1d(np.arange(len(train.labels)), rows)
        parts = (
            _labelled(train_folder, train.take(inside), size),
            _labelled(train_folder, train.take(rows), size),
        )
    return Dataset(*parts, classes, open_junk(ood, size))


def _split_folders(folder: Path) -> tuple[Path, Path | None]:
    """The folders of training and test items; without a folder called `train` all is one."""
    train = folder / "train"
    if not train.is_dir():
        inner = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
        if len(inner) == 1 and (inner[0] / "train").is_dir():
            return _split_folders(inner[0])  # an archive's own folder
        return folder, None
    found = next((folder / name for name in TEST_FOLDERS if (folder / name).is_dir()), None)
    if found is None:
        raise InputError(f"'{folder}' has a folder `train` but none of {', '.join(TEST_FOLDERS)}.")
    return train, found


def _class_names(folder: Path) -> tuple[str, ...]:
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not names:
        raise InputError(f"'{folder}' holds no class folders: a folder for each class is expected.")
    return tuple(names)


def _by_class(folder: Path, classes: Collection[str]) -> _Files:
    """The images of each class folder; one without images is an error that names it."""
    refs: list[str] = []
    labels: list[int] = []
    for number, name in enumerate(classes):
        found = image_refs(folder / name) if (folder / name).is_dir() else []
        if not found:
            raise InputError(f"the class folder '{folder / name}' holds no image. Fill it, or remove it.")
        refs += [f"{name}/{ref}" for ref in found]
        labels += [number] * len(found)
    return _Files(refs, np.asarray(labels, dtype=np.int64))


def _held_out(labels: NDArray[np.int64], share: float, seed: int, place: Path) -> NDArray[np.int64]:
    """Rows of the test set: this share of every class, to the nearest item, drawn by seed."""
    if not 0 < share < 1:
        raise InputError(f"'{place}' has no folders `train` and `test`: test_share must lie between 0 and 1.")
    rows: list[NDArray[np.int64]] = []
    for number in range(int(labels.max()) + 1):
        of_class = np.flatnonzero(labels == number)
        order = Key(seed).child("dataset", "test", number).numpy().permutation(len(of_class))
        rows.append(of_class[order[: round(share * len(of_class))]])
    return np.sort(np.concatenate(rows))


def _labelled(folder: Path, files: _Files, size: int) -> Labelled:
    # a fixed shuffle: items are called by their row numbers, which must not tell the class
    order = Key(0).child("dataset", "order").numpy().permutation(len(files.refs))
    shuffled = files.take(order)
    return Labelled(FilePool(folder, shuffled.refs, size), shuffled.labels)


def _down(folder: Path, name: str) -> Path:
    """The folder that holds the file `name`: this one, or the only one in it."""
    if (folder / name).is_file():
        return folder
    inner = sorted(path for path in folder.iterdir() if (path / name).is_file())
    if not inner:
        raise InputError(f"'{folder}' is not the data set: there is no {name} in it.")
    return inner[0]
