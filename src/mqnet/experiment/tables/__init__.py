"""The tables of a grid: `table(results, kind)` makes one, `render(table, format)` writes it."""

from mqnet.experiment.tables.registry import TABLE, table
from mqnet.experiment.tables.render import FORMATS, render
from mqnet.experiment.tables.shape import Table

__all__ = ["FORMATS", "TABLE", "Table", "render", "table"]
