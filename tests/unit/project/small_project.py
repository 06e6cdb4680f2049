"""A small project of vectors around three corners: cats, dogs and junk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mqnet.data.sources import open_source
from mqnet.project.start import People, start
from mqnet.project.vectors import vectors_of
from mqnet.types import OOD, Answer, Budget, CampaignConfig, Costs, Known, Plugin

N = 40
CLASSES = ("cat", "dog")


def truth(item: str) -> Answer:
    return (Known("cat"), Known("dog"), OOD)[int(item) // N]


def write_vectors(path: Path, dim: int = 6, seed: int = 0) -> Path:
    random = np.random.Generator(np.random.PCG64(seed))
    parts = [random.normal(size=(N, dim)) * 0.5 + np.eye(dim)[i] * 4 for i in range(3)]
    np.save(path, np.concatenate(parts).astype(np.float32))
    return path


def quick_config(**changes: object) -> CampaignConfig:
    model = Plugin("head", {"hidden": 8, "n_steps": 20, "batch_size": 16})
    options = {"budget": Budget(10, 30), "costs": Costs(1.0, 2.0), "strategy": Plugin("confidence"), "model": model}
    return CampaignConfig(CLASSES, **{**options, **changes})


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    def made(labels: dict[str, Answer] | None = None, people: People | None = None, **changes: object) -> Path:
        source = open_source(write_vectors(tmp_path / "photos.npy"))
        encoder, vectors = vectors_of(source, None)
        out = tmp_path / "project"
        start(source, out, quick_config(**changes), vectors, encoder=encoder, labels=labels, people=people)
        return out

    return made
