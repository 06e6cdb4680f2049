"""Real `mqnet` processes for the tests, forked from one that has imported everything, and grids for them to run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "e2e"
PLUGIN = HERE / "learning_plugin.py"


@dataclass(frozen=True)
class Ended:
    """A process that is over."""

    code: int
    out: str
    err: str


class Zygote:
    """Starts `mqnet` processes and waits for them."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._n = scratch, 0
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "PYTHONWARNINGS": "error"}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "zygote.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip

    def _ask(self, request: dict[str, object]) -> dict[str, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, *args: object, cwd: Path, **how: object) -> Running:
        """A process running `mqnet ARGS`, leader of its own group."""
        self._n += 1
        out, err = (self._scratch / f"{self._n}.{name}" for name in ("out", "err"))
        for path in (out, err):  # there even if the process is killed before it opens them
            path.touch()
        request = {"args": [str(arg) for arg in args], "cwd": str(cwd), "out": str(out), "err": str(err), **how}
        return Running(self, self._ask({"start": request})["pid"], out, err)

    def __call__(self, *args: object, cwd: Path, **how: object) -> Ended:
        """Run `mqnet ARGS` to its end."""
        return self.start(*args, cwd=cwd, **how).wait()

    def wait(self, pid: int) -> int:
        return self._ask({"wait": pid})["code"]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@dataclass(frozen=True)
class Running:
    """A process that may still run."""

    zygote: Zygote
    pid: int
    out: Path
    err: Path

    def kill(self, *, group: bool = True) -> None:
        """SIGKILL, to its whole group or to it alone."""
        (os.killpg if group else os.kill)(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """The process once it is over."""
        code = self.zygote.wait(self.pid)
        return Ended(code, self.out.read_text(), self.err.read_text())


def toml(tables: Mapping[str, Mapping[str, object]]) -> str:
    """Tables as TOML."""
    out: list[str] = []
    for table, values in tables.items():
        out += [f"[{table}]", *(f"{name} = {_value(value)}" for name, value in values.items()), ""]
    return "\n".join(out)


def _value(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_value(one)}" for name, one in value.items()) + "}"
    return json.dumps(value)  # JSON's texts, numbers and booleans are TOML's


def tiny(**changes: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """A grid over a few digits that takes a second; a value of None drops the key."""
    base: dict[str, dict[str, object]] = {
        "scenario": {"dataset": "digits", "known_classes": 4, "ood_share": [0.4], "pool_size": 150},
        "campaign": {"rounds": 3, "budget": 10, "cost_known": 1.0, "cost_ood": 2.5},
        "model": {"n_steps": 20},
        "grid": {"strategies": ["random", "sum"], "seeds": [0]},
    }
    merged = {table: {**base.get(table, {}), **changes.get(table, {})} for table in {**base, **changes}}
    return {table: {k: v for k, v in values.items() if v is not None} for table, values in merged.items()}


def write_grid(folder: Path, name: str = "grid.toml", **changes: Mapping[str, object]) -> Path:
    """The tiny grid with changes, as a file."""
    path = folder / name
    path.write_text(toml(tiny(**changes)))
    return path
