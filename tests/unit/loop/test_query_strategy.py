"""A strategy in somebody else's loop picks what it picks in ours."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from mqnet.errors import InputError, PluginError
from mqnet.loop.query_strategy import QueryStrategy

X, DIGITS = load_digits(return_X_y=True)
X, TRUTH = X[:300], np.where(DIGITS[:300] < 3, DIGITS[:300], -1).astype(float)


def start(n: int = 60) -> tuple[np.ndarray, LogisticRegression]:
    y = np.full(len(X), np.nan)
    y[:n] = TRUTH[:n]
    return y, LogisticRegression(max_iter=300).fit(X[:n][TRUTH[:n] >= 0], TRUTH[:n][TRUTH[:n] >= 0])


def test_confidence_is_the_top_of_the_classifiers_uncertainty():
    y, classifier = start()
    rows, utilities = QueryStrategy("confidence").query(X, y, classifier, batch_size=7, return_utilities=True)
    expected = 1 - classifier.predict_proba(X).max(axis=1)
    assert np.isnan(y[rows]).all()
    assert utilities == pytest.approx(expected[rows], abs=1e-6)
    assert utilities.min() >= np.sort(expected[np.isnan(y)])[-7] - 1e-6


def test_mqnet_learns_between_queries_and_is_reproducible():
    picks = []
    for _ in range(2):
        y, classifier = start()
        strategy = QueryStrategy("mqnet", seed=4)
        for _ in range(3):
            rows = strategy.query(X, y, classifier, batch_size=25)
            assert len(set(rows.tolist())) == 25
            assert np.isnan(y[rows]).all()
            y[rows] = TRUTH[rows]
        assert strategy.strategy.meta.net is not None
        picks.append(rows.tolist())
    assert picks[0] == picks[1]


def test_what_is_wrong_is_said():
    y, classifier = start()
    with pytest.raises(InputError, match="no label yet"):
        QueryStrategy("random").query(X, np.full(len(X), np.nan), classifier)
    with pytest.raises(InputError, match="expected a row of X"):
        QueryStrategy("random").query(X[:5], y, classifier)
    y[0] = 77
    with pytest.raises(InputError, match=r"y\[0\] is 77"):
        QueryStrategy("random").query(X, y, classifier)
    with pytest.raises(PluginError, match="features"):
        QueryStrategy("coreset")
