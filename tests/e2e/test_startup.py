"""What a user waits for before anything happens, and the demo."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

MQNET = Path(sys.executable).with_name("mqnet")


def _seconds(command: Sequence[object], runs: int = 3) -> float:
    """Processor seconds of the quickest of some runs: what a user waits for on a machine that does nothing else."""
    took: list[float] = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(took)


def _inside(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_import_is_quick_and_loads_no_torch() -> None:
    code = "import sys, time; t = time.process_time(); import mqnet; print(time.process_time() - t)"
    assert min(float(_inside(code)) for _ in range(5)) < 0.3
    assert _inside("import sys, mqnet; print('torch' in sys.modules)") == "False"


def test_help_is_quick_and_loads_no_torch() -> None:
    assert _seconds([MQNET, "--help"]) < 0.5
    code = (
        "import sys; sys.argv = ['mqnet', '--help']\n"
        "from mqnet.cli.main import run_app\n"
        "sys.stdout = sys.stderr; code = run_app(); sys.stdout = sys.__stdout__; print(code, 'torch' in sys.modules)"
    )
    assert _inside(code) == "0 False"


def test_the_version_is_told() -> None:
    from mqnet import __version__

    told = subprocess.run([MQNET, "--version"], check=True, capture_output=True, text=True).stdout
    assert told == f"{__version__}\n"


@pytest.mark.slow
def test_the_demo_ends_in_a_minute_with_a_table_a_verdict_and_a_report(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([MQNET, "demo", "--out", "demo"], cwd=tmp_path, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60  # on two cores half of that
    assert re.search(r"^strategy .*accuracy", ended.stdout, re.MULTILINE)
    for name in ("random", "confidence", "oracle-purity"):
        assert re.search(rf"^{name} ", ended.stdout, re.MULTILINE)
    assert "For the same " in ended.stdout
    assert ended.stdout.rstrip().endswith("demo/report.html")
    page = (tmp_path / "demo" / "report.html").read_text()
    assert page.count("<svg ") == 7
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert not re.search(r"<(?:script|link|img|iframe)\b|@import|url\(\s*['\"]?(?!#)", page)
