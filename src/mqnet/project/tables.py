"""Tables of rows as CSV, JSON lines or Parquet, written whole or not at all, a chunk at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from pyarrow import csv, parquet

from mqnet.errors import InputError, nearest_name
from mqnet.store.blobs import disk_error, make_folder, sync_folder

Rows: TypeAlias = Any
"""A pyarrow.Table: pyarrow publishes no types."""
FORMATS = ("csv", "jsonl", "parquet")


def write_rows(out: Path, tables: Iterable[Rows], form: str | None = None) -> None:
    """Write tables of one schema after each other; the form is that of the file's name unless it is given.

    The file appears under its name when it is complete. At least one table must come, empty or not.
    """
    form = form or out.suffix.removeprefix(".")
    if form not in FORMATS:
        raise InputError(
            f"'{out}' is not a table's name.{nearest_name(form, FORMATS)} Name the file so, as in out.csv."
        )
    if out.is_dir():
        raise InputError(f"'{out}' is a folder: name a file.")
    make_folder(out.parent)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            write: Callable[[Rows], None] | None = None
            close: Callable[[], None] = lambda: None  # noqa: E731
            for table in tables:
                if write is None:
                    write, close = _writer(form, file, table.schema)
                write(table)
            close()
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(out)
        sync_folder(out.parent)
    except OSError as error:
        raise disk_error(out, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _writer(form: str, file: Any, schema: Any) -> tuple[Callable[[Rows], None], Callable[[], None]]:
    if form == "jsonl":

        def lines(table: Rows) -> None:
            for row in table.to_pylist():
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())

        return lines, lambda: None
    made = csv.CSVWriter(file, schema) if form == "csv" else parquet.ParquetWriter(file, schema)
    return made.write_table, made.close
