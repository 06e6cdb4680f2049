"""Every strategy picks what its obvious form picks, item for item: made-up, degenerate and real rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.reference.strategies import STRATEGIES, similar
from torch import Tensor

from mqnet.ids import ItemIds, RowNames
from mqnet.models.head import HeadConfig, encode, fit_head
from mqnet.registry import STRATEGY
from mqnet.rng import Key
from mqnet.strategies.similar import Similar
from mqnet.view import OOD_CLASS, LabelledView, RoundView

KEY = Key(3).child("references")
VECTORS = ("features", "embedding", "contrastive", "contrastive_semantic")


def round_of(pool: Tensor, labelled: Tensor, answers: Sequence[int], n_classes: int, logits: Tensor) -> RoundView:
    """A round whose vectors are all the same column; in float64, so that both forms see the same near ties."""
    every = ItemIds(RowNames(len(pool) + len(labelled)))
    columns = dict.fromkeys(VECTORS, pool) | {"logits": logits, "predicted_loss": logits.std(dim=1, correction=0)}
    bought = dict.fromkeys(VECTORS, labelled) | {"logits": torch.zeros(len(labelled), n_classes, dtype=torch.float64)}
    return RoundView(
        ids=every.take(np.arange(len(labelled), len(pool) + len(labelled))),
        columns=columns,
        labelled=LabelledView(every.take(np.arange(len(labelled))), bought, torch.tensor(answers, dtype=torch.long)),
        n_classes=n_classes,
        key=KEY.child("view"),
    )


def made_up(
    n: int = 40, n_classes: int = 3, answers: Sequence[int] | None = None, kind: str = "normal", dim: int = 6
) -> RoundView:
    g = torch.Generator().manual_seed(1)
    answers = [i % (n_classes + 1) if i % (n_classes + 1) < n_classes else OOD_CLASS for i in range(14)] \
        if answers is None else answers  # fmt: skip
    pool = torch.randn(n, dim, generator=g, dtype=torch.float64)
    labelled = torch.randn(len(answers), dim, generator=g, dtype=torch.float64)
    logits = 3.0 * torch.randn(n, n_classes, generator=g, dtype=torch.float64)
    if kind == "duplicates":
        pool, logits = pool[torch.arange(n) % 9], logits[torch.arange(n) % 9]
        labelled[1], labelled[-1] = pool[4], labelled[0]
    elif kind == "zero vectors":
        pool[::3], labelled[::4], logits[::3] = 0.0, 0.0, 0.0
    elif kind == "all alike":
        pool, logits = pool[:1].repeat(n, 1), logits[:1].repeat(n, 1)
    elif kind == "certain":  # probabilities that round to 1, and some that are equal
        logits = torch.round(logits) * 5.0
    return round_of(pool, labelled, answers, n_classes, logits)


ROUNDS = {
    "random": made_up(),
    "duplicates": made_up(kind="duplicates"),
    "zero vectors": made_up(kind="zero vectors"),
    "all alike": made_up(12, kind="all alike"),
    "certain": made_up(kind="certain"),
    "one class": made_up(n_classes=1),
    "no junk yet": made_up(answers=[0, 1, 2, 1, 1]),
    "no known answer": made_up(answers=[OOD_CLASS] * 3),
    "a class without answers": made_up(answers=[0, 0, 2, OOD_CLASS]),
    "one item": made_up(1),
    "fewer items than asked for": made_up(7),
}


@pytest.mark.parametrize("case", ROUNDS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_made_up_rounds(name: str, case: str) -> None:
    view, n = ROUNDS[case], 10
    picks = STRATEGY.make(name).select(view, n, KEY).rows.tolist()
    slow = STRATEGIES[name](view, n, KEY)
    assert picks[: len(slow)] == slow  # greedy forms stop where nothing gains; the lowest rows left follow
    assert len(picks) == len(set(picks)) == min(n, len(view))
    assert picks[len(slow) :] == sorted(picks[len(slow) :])


@pytest.mark.parametrize("case", sorted(set(ROUNDS) - {"one class"}))
def test_facility_location(case: str) -> None:
    view = ROUNDS[case]
    slow = similar(view, 6, KEY, "flcmi")
    assert Similar(objective="flcmi").select(view, 6, KEY).rows.tolist()[: len(slow)] == slow


@pytest.mark.data
@pytest.mark.parametrize("name", STRATEGIES)
def test_real_embeddings(name: str, data_folder: Path) -> None:
    """CIFAR-10: four classes known, half-precision vectors as people have them, some items twice."""
    x = torch.from_numpy(np.load(data_folder / "embeddings/cifar10_train.npy")[:220].astype(np.float32))
    y = torch.from_numpy(np.load(data_folder / "embeddings/cifar10_train_labels.npy")[:220].astype(np.int64))
    x[150:160] = x[140:150]
    labels = torch.where(y < 4, y, OOD_CLASS)[:60]
    known = labels >= 0
    head = fit_head(x[:60][known], labels[known], 4, HeadConfig(hidden=16), torch.Generator().manual_seed(0))
    logits = torch.cat([encode(head, row[None])["logits"] for row in x[60:]]).double()
    view = round_of(x[60:], x[:60], labels.tolist(), 4, logits)
    n = 5 if name == "similar" else 40
    assert STRATEGY.make(name).select(view, n, KEY).rows.tolist() == STRATEGIES[name](view, n, KEY)
