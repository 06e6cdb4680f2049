"""Images by their colours and edges: no weights, no packages, a start for who has nothing better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from mqnet.encoders.base import Batch, Batches
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays

COLOUR_CELLS = 4  # the picture as 4 x 4 mean colours
COLOUR_WEIGHT = 2.0  # colours and edges then weigh about alike in a distance
CLIP = 0.2  # one strong edge does not decide a cell (Dalal & Triggs 2005)


@encoder("pixels", needs=("image",))
@dataclass(frozen=True)
class Pixels:
    """Coarse colours and histograms of edge directions (HOG); needs nothing, a rough start."""

    takes: ClassVar[str] = "image"
    requires: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""

    size: int = 48
    cells: int = 8
    directions: int = 9
    batch: int = 256

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """Nothing is learned."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to take up."""

    def encode(self, batch: Batch) -> Tensor:
        """[n, 3 * 16 + 9 * 64]: opponent colours of 4 x 4 cells, then edge directions of 8 x 8 cells in unit blocks."""
        assert isinstance(batch, Tensor)
        images = batch.float() / 255.0
        red, green, blue = images.unbind(1)
        grey = images.mean(1)
        opponent = torch.stack([grey, red - green, (red + green) / 2 - blue], dim=1)
        colours = functional.adaptive_avg_pool2d(opponent, COLOUR_CELLS).flatten(1)
        return torch.cat([COLOUR_WEIGHT * colours, self._edges(grey).flatten(1)], dim=1)

    def _edges(self, grey: Tensor) -> Tensor:
        """Histograms [n, directions, cells, cells] of unsigned edge directions, shared between neighbouring bins."""
        across = functional.pad(grey[:, :, 2:] - grey[:, :, :-2], (1, 1))
        down = functional.pad(grey[:, 2:] - grey[:, :-2], (0, 0, 1, 1))
        strength = (across.square() + down.square()).sqrt()
        place = torch.remainder(torch.atan2(down, across), math.pi) * (self.directions / math.pi)
        bins = torch.arange(self.directions).view(1, -1, 1, 1)
        gap = (place[:, None] - bins).abs()
        share = (1.0 - torch.minimum(gap, self.directions - gap)).clamp_min(0.0)
        cells = functional.adaptive_avg_pool2d(share * strength[:, None], self.cells)
        # each cell is judged against its neighbourhood: contrast and light fall out
        around = functional.avg_pool2d(cells.square().sum(1, keepdim=True), 3, 1, 1, count_include_pad=False)
        clipped = (cells / (around * 9.0 + 1e-4).sqrt()).clamp_max(CLIP)
        return clipped / clipped.flatten(1).norm(dim=1).clamp_min(1e-6).view(-1, 1, 1, 1)
