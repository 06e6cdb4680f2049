"""The example strategy joins a grid as a file, by a configuration, and as an installed package; it keeps the laws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from looking import rows_of

from mqnet.registry import STRATEGY, load_plugin
from mqnet.testing import check_strategy
from processes import write_grid

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_strategy.py"


def test_it_is_short_and_keeps_the_laws() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 40
    load_plugin(EXAMPLE)
    check_strategy(lambda: STRATEGY.make("shy"), name="shy")


def test_it_joins_as_a_file_and_by_the_configuration(mqnet, tmp_path: Path) -> None:
    write_grid(tmp_path, grid={"strategies": ["random", {"name": "shy", "weight": 2.0}]})
    ended = mqnet("run", "grid.toml", "--out", "out", "--jobs", "2", "--plugin", EXAMPLE, cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert {row["strategy"] for row in rows_of(tmp_path / "out")} == {"random", "shy(weight=2.0)"}
    listed = (tmp_path / "grid.toml").read_text()
    (tmp_path / "listed.toml").write_text(f'plugins = ["{EXAMPLE}"]\n{listed}')
    ended = mqnet("run", "listed.toml", "--out", "listed", "--jobs", "1", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert rows_of(tmp_path / "listed") == rows_of(tmp_path / "out")


def test_it_joins_as_an_installed_package(mqnet, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "shy_package").mkdir(parents=True)
    (site / "shy_package" / "__init__.py").write_text(EXAMPLE.read_text())
    info = site / "shy_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shy-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mqnet.strategy]\nshy = shy_package:Shy\n")
    write_grid(tmp_path, grid={"strategies": ["random", "shy"]}, campaign={"rounds": 2})
    cells = _cells(tmp_path, site, "out")
    assert set(cells) == {"random", "shy"}
    # a new release of the package is another strategy, and leaves the rest alone
    (site / "shy_package" / "__init__.py").write_text(EXAMPLE.read_text().replace("0.5", "0.25"))
    changed = _cells(tmp_path, site, "out")
    assert changed["random"] == cells["random"]
    assert changed["shy"] != cells["shy"]
    # without the package its name is unknown
    ended = mqnet("run", "grid.toml", "--out", "alone", cwd=tmp_path)
    assert ended.code == 2
    assert "no strategy is called 'shy'" in ended.err


def _cells(folder: Path, site: Path, out: str) -> dict[str, str]:
    """The cell of every strategy, after a run in a process that finds the package."""
    ended = subprocess.run(
        [sys.executable, "-c", "from mqnet.cli.main import run_main; run_main()", "run", "grid.toml", "--out", out,
         "--jobs", "1"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    return {row["strategy"]: row["cell"] for row in rows_of(folder / out)}
