"""What a user has: folders of images, tables of texts, vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from mqnet.data.pools import open_npy
from mqnet.data.sources import image_file, open_source
from mqnet.errors import InputError, PoolError


def _picture(path: Path, colour: str = "red") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), colour).save(path)


def test_a_folder_of_images_is_found_by_suffix_in_all_subfolders(tmp_path: Path) -> None:
    for name in ("b/2.JPG", "a/1.png", "a/deep/3.webp", "top.gif", ".hidden/x.png", "a/.y.png"):
        _picture(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "mqnet-campaign" / "arrays").mkdir(parents=True)
    (tmp_path / "mqnet-campaign" / "campaign.db").write_bytes(b"")
    _picture(tmp_path / "mqnet-campaign" / "arrays" / "figure.png")
    found = open_source(tmp_path)
    assert (found.kind, list(found.ids)) == ("image", ["a/1.png", "a/deep/3.webp", "b/2.JPG", "top.gif"])
    assert list(found.refs) == list(found.ids)
    assert found.labels is None
    assert found.file_of("a/1.png") == tmp_path / "a" / "1.png"
    (tmp_path / "top.gif").unlink()
    assert open_source(str(tmp_path)).labels == ["a", "a/deep", "b"]


@pytest.mark.parametrize("ref", ["../x.png", "a/../../x.png", "/etc/passwd", "", "a\x00b"])
def test_no_ref_leads_out_of_the_folder(tmp_path: Path, ref: str) -> None:
    with pytest.raises(PoolError, match="is not a file of the pool"):
        image_file(tmp_path, ref)


ROWS = [
    {"id": "q1", "text": "what, when", "label": "a"},
    {"id": "q2", "text": "", "label": ""},
    {"id": "007", "text": "line\nbreak", "label": "c"},
]


def _table(path: Path) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        gap = "\t" if path.suffix == ".tsv" else ","
        quoted = [[f'"{row[name]}"' for name in ("id", "text", "label")] for row in ROWS]
        path.write_text("\n".join(gap.join(cells) for cells in (["id", "text", "label"], *quoted)) + "\n")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_of_texts(tmp_path: Path, kind: str) -> None:
    found = open_source(_table(tmp_path / f"t.{kind}"))
    assert (found.kind, list(found.ids)) == ("text", ["q1", "q2", "007"])
    assert list(found.refs) == ["what, when", "", "line\nbreak"]
    assert found.labels == ["a", "", "c"]


@pytest.mark.parametrize(
    ("header", "chosen"), [("id,Question,x", "Question"), ("body,text", "text"), ("id,label,remark", "remark")]
)
def test_the_text_column_is_guessed_where_it_can_only_be_one(tmp_path: Path, header: str, chosen: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(header + "\n" + ",".join(header.split(",")) + "\n")
    assert list(open_source(path).refs) == [chosen]


def test_a_column_that_cannot_be_guessed_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("left,right\n1,2\n")
    with pytest.raises(PoolError, match=r"which column of '.*' holds the texts\? It has left, right"):
        open_source(path)
    found = open_source(path, text_column="right", id_column="left")
    assert (list(found.ids), list(found.refs)) == (["1"], ["2"])
    with pytest.raises(InputError, match=r"no column 'rigth'\. Did you mean 'right'"):
        open_source(path, text_column="rigth")


def test_vectors(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((3, 2), dtype=np.float32))
    found = open_source(tmp_path / "v.npy")
    assert (found.kind, list(found.ids), list(found.refs)) == ("vector", ["0", "1", "2"], ["", "", ""])
    (tmp_path / "v.ids.json").write_text('["x", "y", "z"]')
    assert list(open_source(tmp_path / "v.npy").ids) == list(open_npy(tmp_path / "v.npy").ids) == ["x", "y", "z"]
    (tmp_path / "v.ids.json").write_text('["x", "y"]')
    with pytest.raises(PoolError, match="must be a JSON list of 3 texts"):
        open_source(tmp_path / "v.npy")
    table = pa.table({"id": ["a", "b"], "embedding": pa.array([[1.0], [2.0]], type=pa.list_(pa.float32()))})
    pyarrow.parquet.write_table(table, tmp_path / "v.parquet")
    found = open_source(tmp_path / "v.parquet")
    assert (found.kind, list(found.ids), len(found)) == ("vector", ["a", "b"], 2)


def test_what_is_no_pool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.csv").write_text("text\n")
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\nnot json\n')
    for path, message in (
        ("none", "does not exist"), ("x.bin", "is no pool: give a folder"), ("empty", "holds no image"),
        ("empty.csv", "has no rows"), ("bad.jsonl", "line 2 of .* is not JSON"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            open_source(tmp_path / path)


def test_looking_at_a_source_needs_no_torch(tmp_path: Path) -> None:
    _picture(tmp_path / "a.png")
    code = f"import sys; from mqnet.data.sources import open_source; open_source({str(tmp_path)!r}); assert 'torch' not in sys.modules"  # noqa: E501
    subprocess.run([sys.executable, "-c", code], check=True)
