"""Any vision or text model of the transformers library, by its name or folder."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from mqnet.encoders.base import Batch, Batches
from mqnet.encoders.sentence_transformers import hush
from mqnet.errors import ConfigError
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays


@dataclass
class _Transformers:
    requires: ClassVar[tuple[str, ...]] = ("transformers",)
    install: ClassVar[str] = "transformers"

    model: str = ""
    batch: int = 32
    device: str = "cpu"
    _parts: tuple[Any, Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("which model? Write 'transformers:NAME' (images: 'transformers-vision:NAME').")

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """Nothing is learned."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to take up."""

    def _loaded(self, preparation: str) -> tuple[Any, Any]:
        if self._parts is not None:
            return self._parts
        library: Any = importlib.import_module("transformers")
        hush()
        try:
            prepare = getattr(library, preparation).from_pretrained(self.model)
            # safetensors only: nothing is unpickled
            net = library.AutoModel.from_pretrained(self.model, use_safetensors=True)
        except Exception as error:  # a name nobody knows, no network, no safetensors: the library's errors are many
            raise ConfigError(f"the model '{self.model}' cannot be loaded: {error}") from error
        self._parts = net.eval().to(self.device), prepare
        return self._parts


@encoder("transformers", needs=("text",))
@dataclass
class TransformersText(_Transformers):
    """A text model of transformers, mean over its tokens: `transformers:bert-base-multilingual-cased`, or a folder."""

    takes: ClassVar[str] = "text"

    @property
    def size(self) -> int:
        """Texts have none."""
        return 0

    def encode(self, batch: Batch) -> Tensor:
        """Mean of the last layer over a text's tokens [n, D]."""
        net, prepare = self._loaded("AutoTokenizer")
        tokens = prepare([str(text) for text in batch], padding=True, truncation=True, return_tensors="pt")
        tokens = tokens.to(self.device)
        with torch.inference_mode():
            states = net(**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(2).float()
        return ((states * mask).sum(1) / mask.sum(1).clamp_min(1.0)).cpu()


@encoder("transformers-vision", needs=("image",))
@dataclass
class TransformersVision(_Transformers):
    """A vision model of transformers, pooled: `transformers-vision:facebook/dinov2-small`, or a folder."""

    takes: ClassVar[str] = "image"
    size: int = 224

    def encode(self, batch: Batch) -> Tensor:
        """The pooled output where the model has one, else the mean over its patches [n, D]."""
        net, prepare = self._loaded("AutoImageProcessor")
        assert isinstance(batch, Tensor)
        inputs = prepare(list(batch), return_tensors="pt").to(self.device)
        with torch.inference_mode():
            found = net(**inputs)
        pooled = getattr(found, "pooler_output", None)
        return (pooled if pooled is not None else found.last_hidden_state.mean(1)).float().flatten(1).cpu()
