"""The resident memory of this process, where the system tells it (Linux); NaN elsewhere."""

from __future__ import annotations

import contextlib
from pathlib import Path


def forget_peak() -> float:
    """Forget the peak so far (where the system can), and return what is resident now, in MB."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _field("VmRSS")


def peak_mb() -> float:
    """The highest resident memory since the peak was last forgotten, in MB: libraries and data included."""
    return _field("VmHWM")


def _field(name: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), float("nan"))
