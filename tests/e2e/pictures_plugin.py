"""For tests: a data set of small textures, and checkpoints at every step of a training."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from mqnet.data.images import ImagePool
from mqnet.data.labelled import Dataset, Labelled
from mqnet.models import checkpoints
from mqnet.registry import dataset

sys.path.append(str(Path(__file__).parent.parent))
from pictures import pictures

checkpoints.SECONDS_BETWEEN, checkpoints.COST_SHARE = 0.0, float("inf")


@dataset("textures")
def textures() -> Dataset:
    """Six textures of 8x8 pixels: 120 pictures to learn from, 60 to test with."""
    parts = []
    for n, seed in ((120, 0), (60, 1)):
        labels = np.arange(n, dtype=np.int64) % 6
        parts.append(Labelled(ImagePool(pictures(labels, size=8, seed=seed), source="textures"), labels))
    return Dataset(parts[0], parts[1], tuple("abcdef"))
