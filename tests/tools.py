"""What tests need that pip does not install beside mqnet: a Chromium, axe-core, Label Studio."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium_path() -> str | None:
    """The path of a Chromium, if there is one."""
    named = os.environ.get("MQNET_CHROMIUM")
    return named or next((found for name in BROWSERS if (found := shutil.which(name))), None)


def axe_path() -> Path | None:
    """The path of axe-core's script, if it is there: `make browser-tools` fetches it."""
    named = os.environ.get("MQNET_AXE")
    places = [Path(named)] if named else [ROOT / ".tools" / "node_modules", ROOT / "node_modules"]
    scripts = (place if place.is_file() else place / "axe-core" / "axe.min.js" for place in places)
    return next((script for script in scripts if script.is_file()), None)


def labelstudio_path() -> str | None:
    """Label Studio's program, where it is named: its first start alone takes a minute."""
    named = os.environ.get("MQNET_LABELSTUDIO")
    return shutil.which(named) if named else None
