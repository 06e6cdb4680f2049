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
    assert utilities.shape == (7, len(X))
    for place in range(7):  # each line: what was left to pick from, its pick the best of it
        assert np.flatnonzero(~np.isnan(utilities[place])).tolist() == sorted(rows[place:].tolist())
        assert np.nanargmax(utilities[place]) == rows[place]
    assert utilities[0, rows] == pytest.approx(expected[rows], abs=1e-6)
    assert utilities[0, rows].min() >= np.sort(expected[np.isnan(y)])[-7] - 1e-6


def test_a_clone_is_fitted_to_known_rows_and_the_classifier_given_is_left_alone():
    y, fitted = start()
    unfitted = LogisticRegression(max_iter=300)
    same = [
        QueryStrategy("margin").query(X, y, classifier, fit, batch_size=9).tolist()
        for classifier, fit in ((unfitted, True), (fitted, True), (fitted, False))
    ]
    assert same[0] == same[1] == same[2]
    assert not hasattr(unfitted, "coef_")
    weights = np.where(TRUTH == 0, 50.0, 1.0)
    heavy = LogisticRegression(max_iter=300).fit(X[:60][y[:60] >= 0], y[:60][y[:60] >= 0], weights[:60][y[:60] >= 0])
    weighted = QueryStrategy("margin").query(X, y, unfitted, sample_weight=weights, batch_size=9).tolist()
    assert weighted == QueryStrategy("margin").query(X, y, heavy, False, batch_size=9).tolist() != same[0]


def test_only_candidates_are_asked():
    y, classifier = start()
    few = [250, 70, 299, 70, 101]
    rows = QueryStrategy("margin").query(X, y, classifier, candidates=few, batch_size=10)
    assert sorted(rows.tolist()) == [70, 101, 250, 299]
    every = QueryStrategy("margin").query(X, y, classifier, batch_size=len(X)).tolist()
    assert rows.tolist() == [row for row in every if row in few]


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
    for wrong, words in {300: "holds row 300", -1: "holds row -1", 5: "row 5, which y has"}.items():
        with pytest.raises(InputError, match=words):
            QueryStrategy("random").query(X, y, classifier, candidates=[70, wrong])
    with pytest.raises(InputError, match="row numbers of X"):
        QueryStrategy("random").query(X, y, classifier, candidates=X[:3])
    with pytest.raises(InputError, match="known class"):
        QueryStrategy("random").query(X, np.where(np.isnan(y), np.nan, -1), classifier)
    y[0] = 77
    with pytest.raises(InputError, match=r"y\[0\] is 77"):
        QueryStrategy("random").query(X, y, classifier, fit_clf=False)
    with pytest.raises(PluginError, match="features"):
        QueryStrategy("coreset")


@pytest.mark.parametrize("name", ["random", "confidence", "margin", "entropy", "mqnet"])
def test_in_the_loop_of_scikit_activeml(name: str):
    """Its classifier, its labels, its call; its own strategies pick the same where both have the rule."""
    from skactiveml import classifier as classifiers
    from skactiveml import pool
    from skactiveml.utils import MISSING_LABEL, unlabeled_indices

    methods = {"confidence": "least_confident", "margin": "margin_sampling", "entropy": "entropy"}
    y = np.full(len(X), MISSING_LABEL)
    y[:60] = TRUTH[:60]
    classifier = classifiers.SklearnClassifier(LogisticRegression(max_iter=300), classes=[0, 1, 2])
    ours = QueryStrategy(name, missing_label=MISSING_LABEL)
    for _ in range(4):
        known = np.where(y == -1, MISSING_LABEL, y)  # junk has no place among its classifier's classes
        classifier.fit(X, known)
        rows, utilities = ours.query(X=X, y=y, clf=classifier, batch_size=15, return_utilities=True)
        assert set(rows.tolist()) <= set(unlabeled_indices(y).tolist())
        assert len(set(rows.tolist())) == 15
        if name in methods:
            theirs = pool.UncertaintySampling(method=methods[name], random_state=0)
            candidates = np.flatnonzero(np.isnan(y))
            picks, values = theirs.query(X, known, classifier, candidates=candidates, batch_size=15,
                                         return_utilities=True)  # fmt: skip
            assert utilities.shape == values.shape
            # equal to float32 they may come in another order
            assert sorted(values[0, rows]) == pytest.approx(sorted(values[0, picks]), abs=1e-5)
        y[rows] = TRUTH[rows]
    assert not np.isnan(y[:60]).any()
    assert (~np.isnan(y)).sum() == 120
