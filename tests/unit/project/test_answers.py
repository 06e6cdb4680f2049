"""Files of answers: every form says the same, and what is wrong is named."""

from __future__ import annotations

import json

import pytest

from mqnet.errors import AnswerError, ConfigError, InputError
from mqnet.project.answers import check_names, parse_answers, read_answers
from mqnet.types import OOD, SKIP, Known

CLASSES = ("cat", "big dog", "Skip it")
MEANT = {"a.jpg": Known("cat"), 'b",\n.jpg': Known("big dog"), "c": OOD, "d": SKIP}
GIVEN = [("a.jpg", "cat"), ('b",\n.jpg', "big dog"), ("c", "None of these"), ("d", "SKIP")]

FORMS = {
    "object": json.dumps(dict(GIVEN)),
    "list": json.dumps([{"item": item, "answer": answer} for item, answer in GIVEN]),
    "labels": json.dumps([{"item": item, "label": answer} for item, answer in GIVEN]),
    "answers": json.dumps({"answers": [{"item": item, "answer": answer} for item, answer in GIVEN]}),
    "lines": "\n".join(json.dumps({"item": item, "answer": answer}) for item, answer in GIVEN) + "\n\n",
    "csv": 'item,answer\na.jpg,cat\n"b"",\n.jpg",big dog\nc,none of these\nd,skip\n',
    "csv in another order": 'label, x,item\ncat,,a.jpg\nbig dog,,"b"",\n.jpg"\nood,,c\nskipped,1,d\n',
    "kinds": json.dumps(
        [
            {"item": "a.jpg", "answer": {"kind": "known", "name": "cat"}},
            {"item": 'b",\n.jpg', "answer": {"kind": "known", "name": "big dog"}},
            {"item": "c", "answer": {"kind": "ood"}},
            {"item": "d", "answer": {"kind": "skip"}},
        ]
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_every_form_says_the_same(text: str) -> None:
    assert parse_answers(text, CLASSES, "it") == MEANT


def test_one_line_is_one_answer_and_the_last_counts() -> None:
    assert parse_answers('{"item": "a", "answer": "cat"}', CLASSES, "it") == {"a": Known("cat")}
    assert parse_answers("item,answer\na,cat\na,ood\n", CLASSES, "it") == {"a": OOD}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("item,says\na,cat\n", "columns item, says; expected `item` and `answer`"),
        ("item,answer\n,cat\n", "row 2 of it names no item"),
        ('item,answer\na,"cat\n', "is no CSV"),
        ('{"item": "a", "answer": "cat"}\n{"item"', "line 2 of it is no JSON"),
        ('[{"answer": "cat"}]', "entry 1 of it names no item"),
        ('["cat"]', "entry 1 of it names no item"),
    ],
)
def test_a_broken_file_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_answers(text, CLASSES, "it")


@pytest.mark.parametrize("value", [None, 3, "", [], {"kind": "known"}, {"kind": "knwon", "name": "cat"}, "Cat"])
def test_what_is_no_answer_names_the_item(value: object) -> None:
    with pytest.raises(AnswerError, match="item 'a'"):
        parse_answers(json.dumps({"a": value}), CLASSES, "it")


def test_files_that_cannot_be_read_are_named(tmp_path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv' does not exist"):
        read_answers(tmp_path / "nowhere.csv", CLASSES)
    (tmp_path / "bad.csv").write_bytes(b"item,answer\n\xff,cat\n")
    with pytest.raises(InputError, match=r"bad\.csv' is no UTF-8"):
        read_answers(tmp_path / "bad.csv", CLASSES)
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbfitem,answer\r\na,cat\r\n")
    assert read_answers(tmp_path / "excel.csv", CLASSES) == {"a": Known("cat")}


def test_classes_keep_off_the_words_for_junk_and_skips() -> None:
    check_names(CLASSES)
    for name in ("OOD", " skip ", "None of these"):
        with pytest.raises(ConfigError, match="cannot be called"):
            check_names(("cat", name))
