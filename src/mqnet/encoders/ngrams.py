"""Texts by their letters: hashed character n-grams, weighted by rarity, in a few hundred dimensions."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from mqnet.encoders.base import Batch, Batches
from mqnet.registry import encoder
from mqnet.rng import Key
from mqnet.types import Arrays

MOST_FITTED = 50_000
"""Texts that rarity and directions are learned from: a random sample of a larger pool."""


@encoder("ngrams", needs=("text",))
@dataclass
class NGrams:
    """Character n-grams (tf-idf, then truncated SVD); needs nothing, knows no synonyms."""

    takes: ClassVar[str] = "text"
    requires: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""

    dim: int = 256
    shortest: int = 2
    longest: int = 4
    n_hashes: int = 2**15
    batch: int = 1024
    _state: Arrays = field(default_factory=dict[str, Tensor], init=False, repr=False)

    @property
    def size(self) -> int:
        """Texts have none."""
        return 0

    def fit(self, n_items: int, batches: Batches, key: Key) -> Arrays:
        """`rarity` [F] = ln((1 + n) / (1 + n_f)) + 1, and `directions` [F, D] of the largest spread."""
        from sklearn.utils.extmath import randomized_svd

        rows = key.child("texts").numpy().permutation(n_items)[:MOST_FITTED]
        texts = [str(text) for text in chain.from_iterable(batches(sorted(rows.tolist())))]
        counts = self._counts(texts)
        rarity = np.log((1.0 + counts.shape[0]) / (1.0 + np.bincount(counts.indices, minlength=self.n_hashes))) + 1.0
        weighted = _unit_rows(counts.multiply(rarity.astype(np.float32)).tocsr())
        n = min(self.dim, *weighted.shape)
        seed = np.random.RandomState(key.child("directions").integer() % 2**32)  # what sklearn takes
        _, _, directions = randomized_svd(weighted, n, random_state=seed)
        found = torch.from_numpy(np.ascontiguousarray(directions.T, dtype=np.float32))
        return {"rarity": torch.from_numpy(rarity.astype(np.float32)), "directions": found}

    def restore(self, state: Arrays) -> None:
        """Take up rarity and directions."""
        self._state = state

    def encode(self, batch: Batch) -> Tensor:
        """Unit vectors [n, D]; a text without letters is zero."""
        counts = self._counts([str(text) for text in batch])
        weighted = _unit_rows(counts.multiply(self._state["rarity"].numpy()).tocsr())
        vectors = torch.from_numpy(weighted @ self._state["directions"].numpy()).float()
        return torch.nn.functional.normalize(vectors, dim=1)

    def _counts(self, texts: list[str]) -> Any:
        """Damped counts 1 + ln(n) [n, F], sparse."""
        from sklearn.feature_extraction.text import HashingVectorizer

        options: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (self.shortest, self.longest), "norm": None}
        hashing = HashingVectorizer(n_features=self.n_hashes, alternate_sign=False, **options)
        counts: Any = hashing.transform(texts)
        counts.data = 1.0 + np.log(counts.data)
        return counts.astype(np.float32)


def _unit_rows(matrix: Any) -> Any:
    from sklearn.preprocessing import normalize

    return normalize(matrix, copy=False)
