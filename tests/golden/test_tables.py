"""Every kind of table in every format, from a small made-up results.csv, as the files beside it have it.

`python tests/golden/test_tables.py` writes the files anew; read the difference before it is committed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mqnet.experiment.results import Results, read_rows
from mqnet.experiment.tables import FORMATS, TABLE, Table, render, table

HERE = Path(__file__).parent / "tables"
ENDINGS = {"text": "txt", "markdown": "md", "latex": "tex", "csv": "csv"}
KINDS = (
    "aulc-cost", "auroc", "cost-to-target", "final", "meta-input", "meta-objective", "ood-cost", "oracle-gap", "paired",
    "ranking", "rounds", "self-validation", "skyline", "time", "wasted",
)  # fmt: skip


def made(kind: str) -> Table:
    """The table of a kind; the cost table has results of its own."""
    return table(Results(read_rows(HERE / ("costs.csv" if kind == "ood-cost" else "results.csv"))), kind)


def test_every_kind_has_its_files() -> None:
    names = {name for name in TABLE.names() if TABLE.get(name).target.__module__.startswith("mqnet.")}
    assert names == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_table_is_as_it_was(kind: str, form: str) -> None:
    golden = (HERE / f"{kind}.{ENDINGS[form]}").read_text(encoding="utf-8")
    assert render(made(kind), form) + "\n" == golden


if __name__ == "__main__":
    for name in KINDS:
        for form_ in FORMATS:
            text = render(made(name), form_) + "\n"
            (HERE / f"{name}.{ENDINGS[form_]}").write_text(text, encoding="utf-8")
