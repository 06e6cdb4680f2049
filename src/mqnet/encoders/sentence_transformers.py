"""Any model of the sentence-transformers library, by its name or folder."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from mqnet.encoders.base import Batch, Batches
from mqnet.errors import ConfigError
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays


@encoder("sentence-transformers", needs=("text",))
@dataclass
class SentenceTransformers:
    """A model of sentence-transformers: `sentence-transformers:all-mpnet-base-v2`, or a folder."""

    takes: ClassVar[str] = "text"
    requires: ClassVar[tuple[str, ...]] = ("sentence_transformers",)
    install: ClassVar[str] = "sentence-transformers"

    model: str = ""
    batch: int = 64
    device: str = "cpu"
    _net: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("which model? Write 'sentence-transformers:NAME', with a name or a folder.")

    @property
    def size(self) -> int:
        """Texts have none."""
        return 0

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """Nothing is learned."""
        return {}

    def restore(self, state: Arrays) -> None:
        """Nothing to take up."""

    def encode(self, batch: Batch) -> Tensor:
        """The model's vectors [n, D]."""
        if self._net is None:
            self._net = load_sentences(self.model, self.device)
        return encode_sentences(self._net, [str(text) for text in batch])


def load_sentences(model: str, device: str, *, offline: bool = False) -> Any:
    """A model of sentence-transformers; safetensors only, so that nothing is unpickled."""
    if offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the hub's library is first imported
    library: Any = importlib.import_module("sentence_transformers")
    hush()
    try:
        return library.SentenceTransformer(
            model, device=device, local_files_only=offline, model_kwargs={"use_safetensors": True}
        )
    except Exception as error:  # a name nobody knows, no network, no safetensors: the library's errors are many
        raise ConfigError(f"the model '{model}' cannot be loaded: {error}") from error


def hush() -> None:
    """No bars of the transformers library between our own lines."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.disable_progress_bar()


def encode_sentences(net: Any, texts: Sequence[str]) -> Tensor:
    """The texts' vectors float32 [n, D]."""
    with torch.inference_mode():
        found = net.encode(list(texts), batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False)
    return found.float().cpu()
