"""What people answered, as a table or a data set that other tools read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa

from mqnet.errors import InputError, StoreError
from mqnet.project.tables import Rows, write_rows
from mqnet.server.annotations import NONE_OF_THESE, annotation, task_data
from mqnet.store.blobs import disk_error, make_folder, sync_folder, write_durably
from mqnet.store.campaign import CampaignStore
from mqnet.types import OOD, SKIP, Answer, Known

Format = Literal["csv", "jsonl", "parquet", "hf", "coco", "labelstudio"]
FORMATS: tuple[Format, ...] = get_args(Format)
SKIPPED = "skipped"


@dataclass(frozen=True)
class Labelled:
    """An answered item: what it is, what was answered, when, by whom and at which cost."""

    item: str
    answer: Answer
    round: int
    cost: float
    annotator: str
    kind: str
    content: str
    """An image's path below the root, the text, or nothing for a vector."""

    @property
    def label(self) -> str:
        """The class, or what stands in its place."""
        if isinstance(self.answer, Known):
            return self.answer.name
        return NONE_OF_THESE if self.answer is OOD else SKIPPED

    def row(self) -> dict[str, object]:
        """A row of a table; images and texts have a column that shows them."""
        shown = {} if self.kind == "vector" else {self.kind: self.content}
        what = "known" if isinstance(self.answer, Known) else self.answer.value
        own = {"round": self.round, "cost": self.cost, "annotator": self.annotator}
        return {"item": self.item, **shown, "label": self.label, "kind": what, **own}


@dataclass(frozen=True)
class Exported:
    """What was written where."""

    out: str
    format: str
    items: int
    known: int
    ood: int
    skipped: int

    def json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self))


def answered(store: CampaignStore) -> list[Labelled]:
    """Every answered item of a project, in the order of purchase, imported labels first."""
    lines = store.ledger()
    items = store.items([line.item for line in lines])
    return [
        Labelled(
            line.item, line.answer, line.round, line.cost, line.annotator, items[line.item].kind, items[line.item].ref
        )
        for line in lines
    ]


def kept(lines: Sequence[Labelled], *, with_ood: bool, with_skipped: bool) -> list[Labelled]:
    """The known items, and those answered OOD or skipped if they are wanted."""
    unwanted: set[Answer] = set()
    if not with_ood:
        unwanted.add(OOD)
    if not with_skipped:
        unwanted.add(SKIP)
    return [line for line in lines if line.answer not in unwanted]


def export(
    out: Path,
    form: Format,
    lines: Sequence[Labelled],
    *,
    kind: str,
    name: str,
    classes: Sequence[str],
    root: Path | None = None,
    image_prefix: str = "",
) -> Exported:
    """Write answered items; `root` is the folder of the images. A folder that holds something already is refused."""
    if form in ("csv", "jsonl", "parquet"):
        write_rows(out, [_table(lines, kind)], form)
    elif form == "hf":
        _hugging_face(out, lines, kind, name, root)
    elif form == "coco":
        write_durably(out, _json(_coco(lines, classes, _root(root))))
    else:
        tasks = [
            {
                "data": task_data(line.item, line.kind, image_prefix * (line.kind == "image") + line.content),
                "annotations": [annotation(line.answer)],
            }
            for line in lines
        ]
        write_durably(out, _json(tasks))
    n_known = sum(isinstance(line.answer, Known) for line in lines)
    n_ood = sum(line.answer is OOD for line in lines)
    return Exported(str(out), form, len(lines), n_known, n_ood, len(lines) - n_known - n_ood)


def _table(lines: Sequence[Labelled], kind: str) -> Rows:
    shown = [] if kind == "vector" else [(kind, pa.string())]
    texts = [(name, pa.string()) for name in ("label", "kind")]
    last = [("round", pa.int64()), ("cost", pa.float64()), ("annotator", pa.string())]
    schema = pa.schema([("item", pa.string()), *shown, *texts, *last])
    return pa.Table.from_pylist([line.row() for line in lines], schema=schema)


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _root(root: Path | None) -> Path:
    if root is None:
        raise InputError("this campaign has no images: choose another format than coco.")
    return root


def _coco(lines: Sequence[Labelled], classes: Sequence[str], root: Path) -> dict[str, object]:
    """Whole-image boxes: COCO knows no label of an image as a whole."""
    from PIL import Image, UnidentifiedImageError

    names = [*classes, *(name for name in (NONE_OF_THESE, SKIPPED) if any(line.label == name for line in lines))]
    number = {name: i for i, name in enumerate(names, 1)}
    images: list[dict[str, object]] = []
    boxes: list[dict[str, object]] = []
    for i, line in enumerate(lines, 1):
        try:
            with Image.open(root / line.content) as image:
                width, height = image.size
        except (OSError, UnidentifiedImageError) as error:
            raise StoreError(f"item '{line.item}': '{root / line.content}' is not there or is no image.") from error
        images.append({"id": i, "file_name": line.content, "width": width, "height": height})
        box = {"bbox": [0, 0, width, height], "area": width * height, "iscrowd": 0}
        boxes.append({"id": i, "image_id": i, "category_id": number[line.label], **box})
    return {
        "info": {"description": "exported by mqnet: one box around each whole image"},
        "images": images,
        "annotations": boxes,
        "categories": [{"id": i, "name": name, "supercategory": ""} for name, i in number.items()],
    }


def _hugging_face(out: Path, lines: Sequence[Labelled], kind: str, name: str, root: Path | None) -> None:
    """A folder `datasets.load_dataset` reads: Parquet, or images beside a metadata file; and a card."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"'{out}' is there already: name a new folder.")
    building = out.with_name(f".{out.name}.new")
    try:
        shutil.rmtree(building, ignore_errors=True)
        make_folder(building)
        if kind == "image":
            _image_folder(building / "train", lines, _root(root))
        else:
            write_rows(building / "data" / "train-00000-of-00001.parquet", [_table(lines, kind)])
        write_durably(building / "README.md", _card(lines, kind, name).encode())
        building.replace(out)
        sync_folder(out.parent)
    except OSError as error:
        raise disk_error(out, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _image_folder(folder: Path, lines: Sequence[Labelled], root: Path) -> None:
    rows: list[str] = []
    for line in lines:
        source, row = root / line.content, line.row()
        if not source.is_file():
            raise StoreError(f"item '{line.item}': '{source}' is not there.")
        make_folder((folder / line.content).parent)
        shutil.copyfile(source, folder / line.content)
        row["file_name"] = row.pop("image")
        rows.append(json.dumps(row, ensure_ascii=False))
    write_durably(folder / "metadata.jsonl", "".join(row + "\n" for row in rows).encode())


def _card(lines: Sequence[Labelled], kind: str, name: str) -> str:
    labels = sorted({line.label for line in lines})
    where = "train" if kind == "image" else "data"
    files = [{"split": "train", "path": f"{where}/**"}]
    head = {
        "pretty_name": name,
        "task_categories": [] if kind == "vector" else [f"{kind}-classification"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    # JSON is YAML
    front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items())
    counts = "\n".join(f"- {label}: {sum(line.label == label for line in lines)}" for label in labels)
    return f"---\n{front}\n---\n\n# {name}\n\n{len(lines)} items labelled with mqnet.\n\n{counts}\n"
