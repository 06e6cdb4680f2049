"""The `digits` data set: 1,797 handwritten digits that ship inside scikit-learn."""

from __future__ import annotations

import numpy as np

from mqnet.data.labelled import Dataset, Labelled
from mqnet.data.pools import ArrayPool
from mqnet.registry import dataset
from mqnet.rng import Key

TEST_SHARE = 0.3


@dataset("digits")
def digits() -> Dataset:
    """Handwritten digits, 8x8 grey values as vectors of 64; ships inside scikit-learn, works offline."""
    from sklearn.datasets import load_digits

    vectors, labels = load_digits(return_X_y=True)
    vectors, labels = (vectors / 16.0).astype(np.float32), labels.astype(np.int64)
    # one fixed split for every seed: a test item is never in any pool
    order = Key(0).child("digits", "split").numpy().permutation(len(labels))
    n_test = round(TEST_SHARE * len(labels))
    train, test = np.sort(order[n_test:]), np.sort(order[:n_test])
    classes = tuple(str(i) for i in range(10))
    return Dataset(
        train=Labelled(ArrayPool(vectors[train], source="digits"), labels[train]),
        test=Labelled(ArrayPool(vectors[test], source="digits (test)"), labels[test]),
        classes=classes,
    )
