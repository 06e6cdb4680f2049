"""The default purity score against its formula, written out."""

import numpy as np
import pytest
import torch

from mqnet.errors import ConfigError
from mqnet.ids import ItemIds, RowNames
from mqnet.purity.detector import known_log_odds
from mqnet.purity.evidence import evidence
from mqnet.purity.knn import knn
from mqnet.rng import Key
from mqnet.view import LabelledView, RoundView


def made(answers: list[int], n: int = 200, dtype: torch.dtype = torch.float32) -> RoundView:
    g = torch.Generator().manual_seed(1)
    every = ItemIds(RowNames(n + len(answers)))
    pool, labelled = torch.randn(n, 12, generator=g).to(dtype), torch.randn(len(answers), 12, generator=g).to(dtype)
    ids = [every.take(np.arange(len(answers), n + len(answers))), every.take(np.arange(len(answers)))]
    view = LabelledView(ids[1], {"embedding": labelled}, torch.tensor(answers))
    return RoundView(ids[0], {"embedding": pool}, view, 2, key=Key(5))


def z(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_the_formula(dtype):
    view = made([0, 1, -1, 0, -1, -1, 1], dtype=dtype)
    pool, labelled = (v.column("embedding").double().numpy() for v in (view, view.labelled))
    pool, labelled = pool - pool.mean(0), labelled - view.column("embedding").double().numpy().mean(0)
    cosine = (pool @ labelled.T) / np.linalg.norm(pool, axis=1)[:, None] / np.linalg.norm(labelled, axis=1)
    known = view.labelled.known.numpy()
    contrast = np.log(np.exp(cosine[:, known] / 0.1).mean(1)) - np.log(np.exp(cosine[:, ~known] / 0.1).mean(1))
    odds = known_log_odds(view).numpy()
    expected = odds.mean() + odds.std() * z(z(odds) + z(contrast))
    assert evidence(view).numpy() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_before_there_is_evidence():
    assert torch.equal(evidence(made([0, 1, 1])), knn(made([0, 1, 1])).double())
    assert not bool(evidence(made([-1, -1])).any())


def test_a_temperature_that_would_overflow_is_refused():
    with pytest.raises(ConfigError, match="temperature"):
        evidence(made([0, -1]), temperature=0.001)
