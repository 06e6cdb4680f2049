"""Answers as files and programs give them: JSON, JSON lines or CSV; and the words that are no class names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqnet.errors import AnswerError, ConfigError, InputError
from mqnet.server.annotations import NONE_OF_THESE
from mqnet.types import OOD, SKIP, Answer, ItemId, Known, as_answer

WORDS: Mapping[str, Answer] = {NONE_OF_THESE: OOD, "ood": OOD, "skip": SKIP, "skipped": SKIP}
"""How OOD and SKIP are written where a class name could stand; small and capital letters alike."""


def check_names(classes: Sequence[str]) -> None:
    """Refuse classes called by a word that means OOD or SKIP."""
    for name in classes:
        if name.strip().lower() in WORDS:
            raise ConfigError(
                f"a class cannot be called '{name}': the word stands for {WORDS[name.strip().lower()]!r}."
            )


def meant(value: object, classes: tuple[str, ...], item: ItemId) -> Answer:
    """The answer written as a text, or as an object such as {"kind": "known", "name": "cat"} or {"kind": "ood"}."""
    if isinstance(value, dict):
        kind, name = value.get("kind"), value.get("name")
        if kind == "known" and isinstance(name, str):
            return as_answer(Known(name), classes, item)
        value = kind
    if not isinstance(value, str) or not value.strip():
        raise AnswerError(
            f"item '{item}': {value!r} is no answer. Give a class name, '{NONE_OF_THESE}' (or 'ood'), or 'skip'."
        )
    word = WORDS.get(value.strip().lower())
    return as_answer(value if value in classes or word is None else word, classes, item)


def read_answers(path: Path, classes: tuple[str, ...]) -> dict[ItemId, Answer]:
    """The answers of a file, by item; what is wrong is an error that names the line or the item."""
    if not path.is_file():
        raise InputError(f"the file of answers '{path}' does not exist.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise InputError(f"'{path}' is no UTF-8 text: {error}.") from error
    return parse_answers(text, classes, f"'{path}'")


def parse_answers(text: str, classes: tuple[str, ...], source: str) -> dict[ItemId, Answer]:
    """The answers of a text: a JSON object {item: answer}, a JSON list or JSON lines of {"item", "answer"}, or CSV.

    CSV has the columns `item` and `answer` (or `label`). The last answer to an item counts, as corrections do.
    """
    pairs = _json_pairs(text, source) if text.lstrip()[:1] in ("{", "[") else _csv_pairs(text, source)
    return {item: meant(value, classes, item) for item, value in pairs}


def _json_pairs(text: str, source: str) -> list[tuple[ItemId, object]]:
    try:
        whole: Any = json.loads(text)
    except json.JSONDecodeError:
        whole = [_line(line, i, source) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    if isinstance(whole, dict):
        if isinstance(whole.get("answers"), list):
            whole = whole["answers"]
        elif "item" in whole:
            whole = [whole]
        else:
            return list(whole.items())
    return [_entry(entry, i, source) for i, entry in enumerate(whole, 1)]


def _line(line: str, number: int, source: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"line {number} of {source} is no JSON: {error}.") from error


def _entry(entry: object, number: int, source: str) -> tuple[ItemId, object]:
    if not isinstance(entry, dict) or not isinstance(entry.get("item"), str):
        raise InputError(
            f"entry {number} of {source} names no item: expected an object such as "
            '{"item": "photo.jpg", "answer": "cat"}.'
        )
    return entry["item"], entry.get("answer", entry.get("label"))


def _csv_pairs(text: str, source: str) -> Iterable[tuple[ItemId, object]]:
    if not text.strip():
        raise InputError(f"{source} is empty: it holds no answers.")
    table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    names = [name.strip() for name in table.fieldnames or []]
    column = next((name for name in ("answer", "label") if name in names), None)
    if "item" not in names or column is None:
        raise InputError(f"{source} has the columns {', '.join(names)}; expected `item` and `answer` (or `label`).")
    table.fieldnames = names
    try:
        rows = list(table)
    except csv.Error as error:
        raise InputError(f"line {table.line_num} of {source} is no CSV: {error}.") from error
    for i, row in enumerate(rows, 2):
        if not row["item"]:
            raise InputError(f"row {i} of {source} names no item.")
    return [(row["item"], row[column]) for row in rows]
