"""What can be said of a contrastive coder; nothing here imports torch."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["csi", "simclr"]

KINDS: dict[str, Kind] = {"contrastive": "csi", "contrastive_semantic": "simclr"}
"""Which coder gives which column on pools of images (METHOD 3)."""


class CoderConfig(BaseModel):
    """[coder]: the contrastive coders of a campaign on images, trained once on the whole pool without labels."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    net: Literal["resnet8", "resnet14", "resnet18"] = "resnet8"
    epochs: int = Field(default=100, ge=1)
    batch_size: int = Field(default=32, ge=2)
    """Images per step; SimCLR sees 2 views of each, CSI 2 views of 4 rotations of each."""
    lr: float = Field(default=3.0, gt=0)
    """The rate at the end of the warm-up."""
    warmup: float = Field(default=0.01, ge=0, lt=1)
    """Share of the steps during which the rate rises from 0; afterwards it falls to 0 along a cosine."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: float = Field(default=1e-6, ge=0)
    trust: float = Field(default=1e-3, gt=0)
    """LARS: a step's share of the weights' norm at rate 1."""
    temperature: float = Field(default=0.5, gt=0)
    projection: int = Field(default=128, ge=1)
    """Length of the vectors in which views are compared during training."""
    rotation_weight: float = Field(default=1.0, ge=0)
    """CSI: weight of the loss of the head that tells the four rotations apart."""
    smallest_crop: float = Field(default=0.54, gt=0, le=1)
    """The smallest share of an image's area that a view shows."""
    space: Literal["features", "projection"] = "features"
    """Which layer is the representation: the pooled features, or the projection that the loss compares."""
    rotations: Literal[1, 4] = 4
    """CSI: 4 sets the representation of an image side by side with those of its rotations."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 where the processor multiplies it natively."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: the first GPU if there is one."""

    def n_views(self, kind: Kind) -> int:
        """How many pictures a step makes of each image."""
        return 8 if kind == "csi" else 2

    def steps_per_epoch(self, n_items: int) -> int:
        """Whole batches in a pool; a pool smaller than a batch is one."""
        return max(1, n_items // self.batch_size)

    def n_steps(self, n_items: int) -> int:
        """Steps of the whole training."""
        return self.epochs * self.steps_per_epoch(n_items)

    def rate(self, step: int, n_steps: int) -> float:
        """Learning rate of step 0 … n_steps - 1: a linear rise to `lr`, then half a cosine down to 0.

        >>> config = CoderConfig(lr=2.0, warmup=0.5)
        >>> [round(config.rate(step, 8), 3) for step in range(8)]
        [0.5, 1.0, 1.5, 2.0, 2.0, 1.707, 1.0, 0.293]
        """
        rising = int(self.warmup * n_steps)
        if step < rising:
            return self.lr * (step + 1) / rising
        return self.lr * 0.5 * (1.0 + math.cos(math.pi * (step - rising) / max(1, n_steps - rising)))
