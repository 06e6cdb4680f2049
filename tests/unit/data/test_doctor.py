"""The doctor finds every kind of fault, by name, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from mqnet.cli.main import app
from mqnet.data.doctor import examine
from mqnet.data.sources import open_source

RNG = np.random.default_rng(1)


def _noise(side: int = 24) -> Image.Image:
    blots = Image.fromarray(RNG.integers(0, 256, (4, 4, 3)).astype(np.uint8))
    return blots.resize((side, side), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pool")
    for name in ("cat", "dog", "none/deeper"):
        (root / name).mkdir(parents=True)
    for i in range(6):
        _noise().save(root / "cat" / f"{i}.png")
    first = Image.open(root / "cat" / "0.png").convert("RGB")
    first.save(root / "dog" / "nearly.jpg", quality=95)
    (root / "dog" / "same.png").write_bytes((root / "cat" / "1.png").read_bytes())
    _noise().convert("CMYK").save(root / "dog" / "cmyk.jpg")
    _noise().quantize(8).save(root / "dog" / "palette.gif")
    Image.fromarray(RNG.integers(0, 65_536, (8, 8)).astype(np.uint16)).save(root / "dog" / "deep.png")
    image = _noise()
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(root / "dog" / "turned.jpg", exif=exif)
    (root / "dog" / "zero.jpg").write_bytes(b"")
    (root / "dog" / "cut.png").write_bytes((root / "cat" / "2.png").read_bytes()[:60])
    (root / "dog" / "page.jpg").write_text("<html>not found</html>")
    return root


def test_every_fault_of_a_folder_is_named(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = examine(open_source(folder))
    assert {fault: list(items) for fault, items in found.faults.items()} == {
        "empty file": ["dog/zero.jpg"], "truncated": ["dog/cut.png"], "not an image": ["dog/page.jpg"],
    }  # fmt: skip
    assert found.n_faulty == 3
    assert list(found.duplicates) == [["cat/1.png", "dog/same.png"]]
    assert list(found.nearly) == [["cat/0.png", "dog/nearly.jpg"]]
    assert found.oddities == {"16-bit": 1, "CMYK": 1, "EXIF-rotated": 1, "palette": 1}
    assert found.classes == {"cat": 6, "dog": 9}
    assert found.empty_classes == ["none"]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_command_names_them_and_leaves_with_two(folder: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["doctor", str(folder), "--encoder", "pixels"])
    assert shown.exit_code == 2, shown.output
    for words in (
        "'dog/zero.jpg' is empty (0 bytes)", "'dog/cut.png' is truncated", "'dog/page.jpg' is not an image",
        "cat/1.png = dog/same.png", "the folder 'none' holds no image", "3 items must be mended or removed",
        "embedding with 'pixels' would take about",
    ):  # fmt: skip
        assert words in shown.output
    told = runner.invoke(app, ["doctor", str(folder), "--encoder", "pixels", "--json"])
    assert told.exit_code == 2
    record = json.loads(told.stdout)
    assert record["faults"]["truncated"].keys() == {"dog/cut.png"}
    assert record["embedding"]["encoder"] == "pixels"


def test_empty_texts_and_labels_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,text,intent\na,hello,x\nb,  ,x\nc,hello,\nd,bye,y\n")
    found = examine(open_source(path, label_column="intent"))
    assert {fault: list(items) for fault, items in found.faults.items()} == {"empty text": ["b"]}
    assert list(found.duplicates) == [["a", "c"]]
    assert (found.classes, found.unlabelled) == ({"x": 2, "y": 1}, 1)
    good = tmp_path / "good.csv"
    good.write_text("text\none\ntwo\n")
    shown = CliRunner().invoke(app, ["doctor", str(good), "--encoder", "ngrams"])
    assert (shown.exit_code, "nothing must be mended" in shown.output) == (0, True)


def test_ids_that_cannot_be_used_are_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,text\na,hello\na,again\n")
    found = examine(open_source(path))
    assert "id 'a' stands at row 0 and again at row 1" in found.faults["unusable id"][""]


def test_broken_vectors_are_all_named(tmp_path: Path) -> None:
    vectors = RNG.normal(size=(8, 3)).astype(np.float32)
    vectors[2, 1], vectors[5, 0], vectors[6], vectors[7] = np.nan, np.inf, 0.0, vectors[0]
    np.save(tmp_path / "v.npy", vectors)
    found = examine(open_source(tmp_path / "v.npy"))
    assert {fault: list(items) for fault, items in found.faults.items()} == {
        "not finite": ["2", "5"], "all zero": ["6"],
    }  # fmt: skip
    assert list(found.duplicates) == [["0", "7"]]
