"""Kinds of tables by name: one file each in this room, or an entry point (`mqnet.table`), or a plug-in file."""

from __future__ import annotations

from dataclasses import replace

from mqnet.errors import InputError
from mqnet.experiment.notes import reserve_notes
from mqnet.experiment.results import Results
from mqnet.experiment.tables.shape import Table
from mqnet.registry import Registry

TABLE = Registry("table", "mqnet.experiment.tables")
kind_of_table = TABLE.register


def table(results: Results, kind: str, **options: object) -> Table:
    """The table of this kind and what its results need said; an unknown kind or option is an error that lists them."""
    entry = TABLE.get(kind)
    checked = entry.check_options(options)
    if not results.settings:
        raise InputError("there are no results yet: no cell has finished.")
    made: Table = entry.target(results, **checked)
    if not made.rows:
        raise InputError(f"table '{kind}' would be empty: the results hold nothing that belongs in it.")
    return replace(made, notes=(*made.notes, *reserve_notes(results, made.rows)))
