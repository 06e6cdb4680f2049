"""Fashion-MNIST in its IDX files."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mqnet.data.archives import Remote, check_archive, find, read_members
from mqnet.data.images import ImagePool
from mqnet.data.junk import Places, open_junk
from mqnet.data.labelled import Dataset, Labelled
from mqnet.errors import InputError
from mqnet.registry import dataset

CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
SIZE = 32
_SERVER = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
REMOTES = tuple(
    Remote(f"{_SERVER}/{name}.gz", f"md5:{md5}")
    for name, md5 in (
        ("train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"),
    )
)


@dataset("fashion-mnist")
def fashion_mnist(*, root: Path | None = None, download: bool = False, ood: Places = None) -> Dataset:
    """Fashion-MNIST: 70,000 grey images of 28x28, 10 classes, here framed to 32x32 in colour; a folder, or fetched."""
    place = find(root, download, REMOTES, "fashion-mnist")
    if place.is_dir():
        for remote in REMOTES:
            for path in place.rglob(remote.name):
                check_archive(path, None, REMOTES)
    names = [remote.name.removesuffix(".gz") for remote in REMOTES]
    files = read_members(place, names, "fashion-mnist")
    parts = [
        _part(files, images, labels, which)
        for images, labels, which in ((names[0], names[1], "train"), (names[2], names[3], "test"))
    ]
    return Dataset(parts[0], parts[1], CLASSES, open_junk(ood, SIZE))


def _part(files: dict[str, bytes], image_file: str, label_file: str, which: str) -> Labelled:
    grey, labels = read_idx(files[image_file], image_file), read_idx(files[label_file], label_file).astype(np.int64)
    if grey.ndim != 3 or grey.shape[1:] != (28, 28) or labels.shape != grey.shape[:1] or labels.max() >= len(CLASSES):
        raise InputError(f"'{image_file}' and '{label_file}' do not belong together: {grey.shape} and {labels.shape}.")
    frame = (SIZE - 28) // 2
    framed = np.pad(grey, ((0, 0), (frame, frame), (frame, frame)))
    images = np.repeat(framed[:, None], 3, axis=1)
    digits = len(str(len(labels)))
    ids = [f"{which}-{i:0{digits}d}" for i in range(len(labels))]
    return Labelled(ImagePool(images, ids, source=f"fashion-mnist ({which})"), labels)


def read_idx(content: bytes, name: str) -> NDArray[np.uint8]:
    """The array of an IDX file of bytes: two zeros, type 8, the number of dimensions, each of them, then the values."""
    if len(content) >= 4 and content[:3] == b"\x00\x00\x08":
        n = content[3]
        header = 4 + 4 * n
        if len(content) >= header:
            shape = struct.unpack(f">{n}I", content[4:header])
            if len(content) == header + int(np.prod(shape)):
                return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)
    raise InputError(f"'{name}' is not a whole IDX file of bytes. Fetch it again.")
