"""What a user has: a folder of images, a table of texts, or vectors. Nothing here imports torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from mqnet.data import decode, tables
from mqnet.errors import PoolError
from mqnet.ids import ItemIds, RowNames

Kind = Literal["image", "text", "vector"]

TEXT_COLUMNS = (
    "text", "sentence", "question", "utterance", "content", "message", "document", "review", "body", "abstract",
    "description", "title",
)  # fmt: skip
"""Names that tell a column of texts, the likeliest first."""
ID_COLUMN, LABEL_COLUMN = "id", "label"
_OTHER_COLUMNS = frozenset({ID_COLUMN, LABEL_COLUMN, "split", "class", "category", "index", "idx"})
_CAMPAIGN = "campaign.db"


@dataclass(frozen=True)
class Source:
    """Items as their owner keeps them. `ids[i]` is what item i is called, `refs[i]` what is shown of it.

    A ref is a path relative to `path` for images, the text itself for texts, and '' for vectors. `labels[i]` is the
    class folder or label of item i, '' where it has none; None where nothing is labelled.
    """

    kind: Kind
    path: Path
    ids: ItemIds
    refs: Sequence[str]
    labels: Sequence[str] | None = None
    id_column: str = ID_COLUMN
    """Of a table of vectors: the columns its pool is opened with."""
    vector_column: str = "embedding"

    def __len__(self) -> int:
        return len(self.refs)

    @property
    def root(self) -> Path:
        """The folder that refs of images are relative to; for other kinds, where the file lies."""
        return self.path if self.kind == "image" else self.path.parent

    def file_of(self, ref: str) -> Path:
        """The image file of a ref; a ref that leads out of the folder is an error."""
        if self.kind != "image":
            raise PoolError(f"'{self.path}' holds {self.kind}s, not image files.")
        return image_file(self.path, ref)


def image_file(root: Path, ref: str) -> Path:
    """The file below `root` that a relative ref names; one that leads out of it is an error."""
    parts = PurePosixPath(ref)
    if not ref or parts.is_absolute() or ".." in parts.parts or "\x00" in ref:
        raise PoolError(f"'{ref}' is not a file of the pool '{root}'.")
    return root / parts


def open_source(
    path: str | Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
) -> Source:
    """What lies at `path`: a folder of images, a table of texts (CSV, TSV, JSONL, Parquet), or vectors (.npy, Parquet).

    Images are found in all subfolders and called by their relative paths. The column of texts is the one named
    `text_column`, else a usual name ('text', 'question', …), else the only one that can be meant. Nothing is decoded
    here: `mqnet doctor` looks into every item.
    """
    place = Path(path)
    if place.is_dir():
        return _images(place)
    if not place.exists():
        raise PoolError(f"'{place}' does not exist. Give a folder of images, a table of texts or a file of vectors.")
    suffix = place.suffix.lower()
    if suffix == ".npy":
        return _array(place)
    if suffix == ".parquet" and text_column is None:
        vectors = _vector_columns(tables.parquet_schema(place))
        if vectors:
            return _vector_table(place, vectors, id_column)
    if suffix in tables.SUFFIXES:
        return _texts(place, text_column, id_column, label_column)
    raise PoolError(
        f"'{place}' is no pool: give a folder of images, a table of texts ({', '.join(sorted(tables.SUFFIXES))}) "
        "or a file of vectors (.npy, .parquet)."
    )


def image_refs(root: Path) -> list[str]:
    """The image files below a folder, told by their suffix, as sorted relative paths; hidden ones are left out.

    A campaign's own folder is no part of the pool.
    """
    found: list[str] = []
    for folder, inner, files in os.walk(root):
        if _CAMPAIGN in files:
            inner.clear()
            continue
        inner[:] = [name for name in inner if not name.startswith(".")]
        below = Path(folder).relative_to(root)
        found += [
            (below / name).as_posix()
            for name in files
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in decode.SUFFIXES  # noqa: PTH122
        ]
    return sorted(found)


def _images(root: Path) -> Source:
    refs = image_refs(root)
    if not refs:
        raise PoolError(f"the folder '{root}' holds no image ({', '.join(sorted(decode.SUFFIXES))}).")
    folders = [os.path.dirname(ref) for ref in refs]  # noqa: PTH120
    # class folders: every image lies in one, and there are several of them
    labels = folders if all(folders) and len(set(folders)) > 1 else None
    return Source("image", root, ItemIds.of(refs), refs, labels)


def _texts(path: Path, text_column: str | None, id_column: str | None, label_column: str | None) -> Source:
    names = tables.column_names(path)
    text = text_column or _text_column(path, names)
    ids = id_column or (ID_COLUMN if ID_COLUMN in names and text != ID_COLUMN else None)
    label = label_column or (LABEL_COLUMN if LABEL_COLUMN in names and text != LABEL_COLUMN else None)
    columns = tables.read_texts(path, [name for name in (text, ids, label) if name is not None])
    texts = columns[text]
    if not texts:
        raise PoolError(f"the table '{path}' has no rows.")
    own = ItemIds(RowNames(len(texts))) if ids is None else ItemIds.of(columns[ids])
    return Source("text", path, own, texts, columns[label] if label is not None else None)


def _text_column(path: Path, names: Sequence[str]) -> str:
    lower = {name.lower(): name for name in names}
    for usual in TEXT_COLUMNS:
        if usual in lower:
            return lower[usual]
    left = [name for name in names if name.lower() not in _OTHER_COLUMNS]
    if len(left) == 1:
        return left[0]
    raise PoolError(
        f"which column of '{path}' holds the texts? It has {', '.join(names)}. Name one with --text-column "
        "(text_column=… in Python)."
    )


def _array(path: Path) -> Source:
    import numpy as np

    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError) as error:
        raise PoolError(f"'{path}' is not a plain .npy array: {error}") from error
    if array.ndim != 2:
        raise PoolError(f"'{path}' has shape {array.shape}: expected one row per item.")
    return Source("vector", path, ids_beside(path, len(array)), _Same("", len(array)))


def ids_beside(path: Path, n: int) -> ItemIds:
    """The ids of a `.npy` file's rows: those of the `.ids.json` next to it, or zero-padded row numbers."""
    import json

    names = path.with_suffix(".ids.json")
    if not names.is_file():
        return ItemIds(RowNames(n))
    try:
        ids = json.loads(names.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PoolError(f"'{names}' is not a JSON list of ids: {error}.") from error
    if not isinstance(ids, list) or len(ids) != n or not all(isinstance(name, str) for name in ids):
        raise PoolError(f"'{names}' must be a JSON list of {n} texts, one for each row of '{path.name}'.")
    return ItemIds.of(ids)


def _vector_columns(schema: Any) -> list[str]:
    import pyarrow as pa

    floats = (pa.float16(), pa.float32(), pa.float64())
    lists = (pa.types.is_list, pa.types.is_fixed_size_list, pa.types.is_large_list)
    return [field.name for field in schema if any(is_(field.type) for is_ in lists) and field.type.value_type in floats]


def _vector_table(path: Path, vectors: Sequence[str], id_column: str | None) -> Source:
    ids = id_column or ID_COLUMN
    chosen = "embedding" if "embedding" in vectors else vectors[0]
    names = tables.read_texts(path, (ids,))[ids]
    return Source("vector", path, ItemIds.of(names), _Same("", len(names)), id_column=ids, vector_column=chosen)


class _Same(Sequence[str]):
    """The same text n times, without a list."""

    def __init__(self, text: str, n: int) -> None:
        self._text, self._n = text, n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # pyright: ignore
        if isinstance(index, slice):
            return _Same(self._text, len(range(*index.indices(self._n))))
        if not -self._n <= index < self._n:
            raise IndexError(index)
        return self._text
