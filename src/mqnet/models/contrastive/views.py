"""The pictures a contrastive step compares: two random views of each image, and for CSI of each of its rotations."""

from __future__ import annotations

import torch
from torch import Tensor

from mqnet.models.augment import Chain, ColourJitter, Flip, Greyscale, ResizedCrop, all_rotations, augmented
from mqnet.models.contrastive.config import CoderConfig, Kind

_FLIP = Flip()


def random_views(images: Tensor, kind: Kind, config: CoderConfig, generator: torch.Generator) -> Tensor:
    """Views [2 n, …] of images [n, 3, S, S] in [0, 1]; [8 n, …] for CSI. Row i and its partner half-way on are a pair.

    Colours change while images are in [0, 1], before normalisation: the released code jitters normalised images and
    clips them. A rotated image is changed on its own, as the different instance that it counts as.
    """
    mirrored = augmented(_FLIP, images.repeat(2, 1, 1, 1), generator)
    if kind == "csi":
        first, second = mirrored.chunk(2)
        mirrored = torch.cat([all_rotations(first), all_rotations(second)])
    change = Chain((ColourJitter(), Greyscale(), ResizedCrop(scale=(config.smallest_crop, 1.0))))
    return augmented(change, mirrored, generator)
