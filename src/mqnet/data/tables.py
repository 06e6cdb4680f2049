"""Columns of CSV, TSV, JSONL and Parquet tables, as texts. Nothing here imports torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqnet.errors import InputError, nearest_name

SUFFIXES = frozenset({".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"})


def read_columns(path: Path, wanted: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, list[str]]:
    """The wanted columns of a table, every value as text; optional ones where the table has them.

    A missing file, a missing column or an empty value is an error that names it.
    """
    found = read_texts(path, wanted, optional=optional)
    for name, values in found.items():
        if "" in values:
            raise InputError(f"row {values.index('')} of the table '{path}' has no value in column '{name}'.")
    return found


def read_texts(path: Path, wanted: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, list[str]]:
    """Like `read_columns`, with '' where a value is missing or empty."""
    table = _read(path)
    out: dict[str, list[str]] = {}
    for name in (*wanted, *optional):
        if name not in table.column_names:
            if name in optional:
                continue
            raise InputError(f"the table '{path}' has no column '{name}'.{nearest_name(name, table.column_names)}")
        out[name] = ["" if value is None else str(value) for value in table.column(name).to_pylist()]
    return out


def column_names(path: Path) -> tuple[str, ...]:
    """The names of a table's columns, in order; of a Parquet file only the footer is read."""
    if path.suffix.lower() == ".parquet":
        return tuple(parquet_schema(path).names)
    return tuple(_read(path).column_names)


def parquet_schema(path: Path) -> Any:
    """The schema of a Parquet file; a file that is none is an error."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        raise InputError(f"the table '{path}' does not exist.")
    try:
        with ParquetFile(path) as file:
            return file.schema_arrow
    except ArrowException as error:
        raise InputError(f"the table '{path}' cannot be read: {error}") from error


def _read(path: Path) -> Any:
    from pyarrow import ArrowException, csv, parquet, string

    if not path.is_file():
        raise InputError(f"the table '{path}' does not exist.")
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            return parquet.read_table(path)
        if suffix in (".jsonl", ".ndjson"):
            return _read_lines(path)
        parse = csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",", newlines_in_values=True)
        # everything is read as text: a class called '007' must not become the number 7
        with csv.open_csv(path, parse_options=parse) as reader:
            types = {name: string() for name in reader.schema.names}
        convert = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        return csv.read_csv(path, parse_options=parse, convert_options=convert)
    except ArrowException as error:
        raise InputError(f"the table '{path}' cannot be read: {error}") from error


def _read_lines(path: Path) -> Any:
    """A table of one JSON object per line; a line that is none is an error that gives its number."""
    import pyarrow

    names: dict[str, None] = {}
    records: list[dict[str, object]] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (json.JSONDecodeError, UnicodeDecodeError) as error:
                raise InputError(f"line {number} of '{path}' is not JSON: {error}.") from error
            if not isinstance(record, dict):
                raise InputError(f"line {number} of '{path}' is not a JSON object: one {{…}} per line is expected.")
            names |= dict.fromkeys(record)
            records.append(record)
    # numbers, lists and objects are kept as they are written
    texts = {
        name: pyarrow.array([_as_text(record.get(name)) for record in records], type=pyarrow.string()) for name in names
    }
    return pyarrow.table(texts)


def _as_text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
