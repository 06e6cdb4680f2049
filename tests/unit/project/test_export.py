"""Labelled items in every format, read back by the libraries that own it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from PIL import Image

from mqnet.cli.outcome import labels
from mqnet.errors import AnswerError, ConfigError, InputError, StoreError
from mqnet.project.answers import parse_answers
from mqnet.project.export import Labelled, answered, export, kept
from mqnet.project.folder import opened
from mqnet.project.work import ask, tell
from mqnet.server.annotations import annotation, answer_of, label_config, prediction, task_data
from mqnet.types import OOD, SKIP, Known

CLASSES = ("cat", 'a "big" <dog> & co')
ANSWERS = {"p/1.png": Known("cat"), "2.png": Known(CLASSES[1]), "3.png": OOD, "4.png": SKIP}


def line(item: str, kind: str = "image") -> Labelled:
    content = {"image": item, "text": f'He said:\n"{item}", ü', "vector": ""}[kind]
    return Labelled(item, ANSWERS[item], 1, 1.0, "ann", kind, content)


def lines(kind: str = "image") -> list[Labelled]:
    return [line(item, kind) for item in ANSWERS]


def images(folder: Path) -> Path:
    for i, item in enumerate(ANSWERS):
        (folder / item).parent.mkdir(exist_ok=True, parents=True)
        Image.new("RGB", (4 + i, 3)).save(folder / item)
    return folder


def write(out: Path, form: str, kind: str = "image", **more):
    return export(out, form, lines(kind), kind=kind, name="My pool", classes=CLASSES, **more)


def test_tables_say_the_same_in_every_format(tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "parquet"):
        done = write(tmp_path / f"t.{form}", form, "text")
        assert (done.items, done.known, done.ood, done.skipped) == (4, 2, 1, 1)
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = [{**row, "round": int(row["round"]), "cost": float(row["cost"])} for row in csv.DictReader(file)]
    assert rows == [json.loads(text) for text in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert rows == pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert rows[2] == {"item": "3.png", "text": lines("text")[2].content, "label": "none of these", "kind": "ood",
                       "round": 1, "cost": 1.0, "annotator": "ann"}  # fmt: skip
    # what was exported can be told, or imported as initial labels
    assert parse_answers((tmp_path / "t.csv").read_text(), CLASSES, "it") == ANSWERS
    assert parse_answers((tmp_path / "t.jsonl").read_text(), CLASSES, "it") == ANSWERS


def test_junk_and_skips_are_left_out_unless_wanted() -> None:
    for ood in (False, True):
        for skipped in (False, True):
            found = kept(lines(), with_ood=ood, with_skipped=skipped)
            assert [x.item for x in found] == ["p/1.png", "2.png", *["3.png"] * ood, *["4.png"] * skipped]


def test_coco_has_a_box_around_each_whole_image(tmp_path: Path) -> None:
    write(tmp_path / "c.json", "coco", root=images(tmp_path / "photos"))
    found = json.loads((tmp_path / "c.json").read_text())
    names = {category["id"]: category["name"] for category in found["categories"]}
    assert list(names.values()) == [*CLASSES, "none of these", "skipped"]
    boxes = {box["image_id"]: box for box in found["annotations"]}
    for i, (image, item) in enumerate(zip(found["images"], ANSWERS, strict=True)):
        assert (image["file_name"], image["width"], image["height"]) == (item, 4 + i, 3)
        assert boxes[image["id"]]["bbox"] == [0, 0, 4 + i, 3]
        assert names[boxes[image["id"]]["category_id"]] == line(item).label
    (tmp_path / "photos" / "2.png").write_bytes(b"no image")
    with pytest.raises(StoreError, match=r"item '2\.png'"):
        write(tmp_path / "c.json", "coco", root=tmp_path / "photos")
    with pytest.raises(InputError, match="has no images"):
        write(tmp_path / "d.json", "coco", "text")


def test_a_hugging_face_folder_of_images(tmp_path: Path) -> None:
    write(tmp_path / "out", "hf", root=images(tmp_path / "photos"))
    rows = [json.loads(text) for text in (tmp_path / "out" / "train" / "metadata.jsonl").read_text().splitlines()]
    assert [(row["file_name"], row["label"]) for row in rows] == [(x.item, x.label) for x in lines()]
    for item in ANSWERS:
        assert (tmp_path / "out" / "train" / item).read_bytes() == (tmp_path / "photos" / item).read_bytes()
    assert (tmp_path / "out" / "README.md").read_text().startswith('---\npretty_name: "My pool"\n')
    with pytest.raises(InputError, match="is there already"):
        write(tmp_path / "out", "hf", root=tmp_path / "photos")
    (tmp_path / "photos" / "2.png").unlink()
    with pytest.raises(StoreError, match="is not there"):
        write(tmp_path / "again", "hf", root=tmp_path / "photos")
    assert not list(tmp_path.glob("*again*"))


def test_a_hugging_face_folder_of_texts(tmp_path: Path) -> None:
    write(tmp_path / "out", "hf", "text")
    assert pq.read_table(tmp_path / "out" / "data" / "train-00000-of-00001.parquet").num_rows == 4


def test_label_studio_tasks_say_the_answers_and_come_back_as_them(tmp_path: Path) -> None:
    write(tmp_path / "l.json", "labelstudio", image_prefix="s3://bucket/")
    tasks = json.loads((tmp_path / "l.json").read_text())
    assert tasks[0]["data"] == {"mqnet_item": "p/1.png", "image": "s3://bucket/p/1.png"}
    assert {task["data"]["mqnet_item"]: answer_of(task["annotations"][0], CLASSES) for task in tasks} == ANSWERS


def test_label_studios_configuration_holds_every_choice() -> None:
    for kind, tag in (("image", "Image"), ("text", "Text"), ("vector", "Text")):
        root = ElementTree.fromstring(label_config(kind, CLASSES))
        (shown,) = root.findall(tag)
        (choices,) = root.findall("Choices")
        assert [choice.get("value") for choice in choices] == [*CLASSES, "none of these"]
        field = str(shown.get("value")).removeprefix("$")
        assert field in task_data("a", kind, "content")
        (said,) = prediction("v1", "cat", 0.25)["result"]
        assert (
            (said["from_name"], said["to_name"])
            == (choices.get("name"), choices.get("toName"))
            == ("label", shown.get("name"))
        )
    assert prediction("v1", None, 0.5) == {"model_version": "v1", "score": 0.5, "result": []}


def test_annotations_of_any_shape_are_understood_or_named() -> None:
    assert answer_of({"result": []}, CLASSES) is SKIP
    assert answer_of({"result": None, "was_cancelled": True}, CLASSES) is SKIP
    assert answer_of({**annotation(Known("cat")), "was_cancelled": True}, CLASSES) is SKIP
    box = {"type": "rectanglelabels", "value": {"rectanglelabels": ["cat"]}}
    assert answer_of({"result": [box, *annotation(OOD)["result"]]}, CLASSES) is OOD
    with pytest.raises(AnswerError, match=r"annotation 7 chooses 'Cat'.*Did you mean 'cat'"):
        answer_of({"id": 7, **annotation(Known("Cat"))}, CLASSES)
    two = {"type": "choices", "value": {"choices": ["cat", "none of these"]}}
    with pytest.raises(AnswerError, match="an item has one answer"):
        answer_of({"id": 7, "result": [two]}, CLASSES)


def test_a_projects_answers_are_exported(make, tmp_path: Path) -> None:
    folder = make()
    items = [item["item"] for item in ask(folder).items]
    tell(folder, {items[0]: Known("cat"), items[1]: OOD})
    with opened(folder) as (store, _):
        found = answered(store)
    assert [(x.item, x.label, x.kind, x.annotator) for x in found] == [
        (items[0], "cat", "vector", "script"), (items[1], "none of these", "vector", "script"),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"no format.*Choices"):
        labels(folder, "cvs", tmp_path / "x", False, False, "", False)
