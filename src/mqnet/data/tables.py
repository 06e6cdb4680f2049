"""Columns of CSV and Parquet tables, as texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqnet.errors import InputError, nearest_name


def read_columns(path: Path, wanted: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, list[str]]:
    """The wanted columns of a table, every value as text; optional ones where the table has them.

    A missing file, a missing column or an empty value is an error that names it.
    """
    from pyarrow import ArrowException, csv, parquet, string

    if not path.is_file():
        raise InputError(f"the table '{path}' does not exist.")
    try:
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            parse = csv.ParseOptions(newlines_in_values=True)
            # everything is read as text: a class called '007' must not become the number 7
            names = csv.open_csv(path, parse_options=parse).schema.names
            types = {name: string() for name in names}
            convert = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
            table = csv.read_csv(path, parse_options=parse, convert_options=convert)
    except ArrowException as error:
        raise InputError(f"the table '{path}' cannot be read: {error}") from error
    out: dict[str, list[str]] = {}
    for name in (*wanted, *optional):
        if name not in table.column_names:
            if name in optional:
                continue
            raise InputError(f"the table '{path}' has no column '{name}'.{nearest_name(name, table.column_names)}")
        values = table.column(name).to_pylist()
        for row, value in enumerate(values):
            if value is None or value == "":
                raise InputError(f"row {row} of the table '{path}' has no value in column '{name}'.")
        out[name] = [str(value) for value in values]
    return out
