"""A table as texts, with what a renderer needs to know: names, spanning heads, rules, the best and the second best."""

from __future__ import annotations

from dataclasses import dataclass

Place = tuple[int, int]
"""Row and column of a cell."""


@dataclass(frozen=True)
class Table:
    """A title, column heads, rows of texts, and what to know about it.

    The first `n_names` columns name the rows; each holds its text in every row, and renderers show a repeated one once.
    `spans` are heads over the columns after the names (text, how many); a rule stands above each row of `rules`.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    n_names: int = 1
    spans: tuple[tuple[str, int], ...] = ()
    rules: tuple[int, ...] = ()
    best: tuple[Place, ...] = ()
    second: tuple[Place, ...] = ()

    def shown_names(self, row: int) -> tuple[str, ...]:
        """The names of a row without those that stand above it already; the last name is always shown."""
        names = self.rows[row][: self.n_names]
        if row == 0 or row in self.rules:
            return names
        above = self.rows[row - 1][: self.n_names]
        n_same = next((i for i in range(self.n_names) if names[i] != above[i]), self.n_names)
        return ("",) * min(n_same, self.n_names - 1) + names[min(n_same, self.n_names - 1) :]

    def span_of(self, column: int) -> int | None:
        """Which spanning head stands over a column."""
        end = self.n_names
        for i, (_, width) in enumerate(self.spans):
            end += width
            if self.n_names <= column < end:
                return i
        return None

    def markdown(self) -> str:
        """The table in Markdown."""
        from mqnet.experiment.tables.render import render

        return render(self, "markdown")
