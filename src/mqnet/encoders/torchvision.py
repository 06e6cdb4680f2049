"""Any classification model of torchvision with its own weights, less the last layer."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mqnet.encoders.base import Batch, Batches
from mqnet.errors import ConfigError
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays


@encoder("torchvision", needs=("image",))
@dataclass
class TorchVision:
    """A model of torchvision with its default weights, less the classifier: `torchvision:resnet50`."""

    takes: ClassVar[str] = "image"
    requires: ClassVar[tuple[str, ...]] = ("torchvision",)
    install: ClassVar[str] = "torchvision"

    model: str = ""
    size: int = 256
    batch: int = 32
    device: str = "cpu"
    _parts: tuple[Any, Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("which model? Write 'torchvision:NAME', 'torchvision:resnet50' for example.")

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """Nothing is learned."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to take up."""

    def encode(self, batch: Batch) -> Tensor:
        """What the model's classifier is given [n, D]."""
        assert isinstance(batch, Tensor)
        net, prepare = self._loaded()
        with torch.inference_mode():
            return net(prepare(batch).to(self.device)).float().flatten(1).cpu()

    def _loaded(self) -> tuple[Any, Any]:
        if self._parts is not None:
            return self._parts
        try:
            models: Any = importlib.import_module("torchvision.models")
            weights = models.get_model_weights(self.model).DEFAULT
            net = models.get_model(self.model, weights=weights)
        # a name nobody knows, no network, or a torchvision made for another torch (a RuntimeError of its operators)
        except Exception as error:
            raise ConfigError(f"torchvision's model '{self.model}' cannot be loaded: {error}") from error
        for last in ("fc", "classifier", "heads", "head"):
            if isinstance(getattr(net, last, None), nn.Module):
                setattr(net, last, nn.Identity())
                break
        self._parts = net.eval().to(self.device), weights.transforms()
        return self._parts
