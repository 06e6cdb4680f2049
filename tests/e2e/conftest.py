"""Tests here run `mqnet` as a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from processes import Zygote


@pytest.fixture(scope="session")
def mqnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Runs `mqnet` as a process of its own: `mqnet("run", "grid.toml", "--out", "o", cwd=folder)`."""
    zygote = Zygote(tmp_path_factory.mktemp("zygote"))
    yield zygote
    zygote.close()
