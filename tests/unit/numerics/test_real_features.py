"""Item for item the slow references, on features that people have: CIFAR-10 embeddings, duplicated rows included."""

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.reference.kcentre import k_centre_plain
from benchmarks.reference.kmeanspp import k_means_plus_plus_plain
from benchmarks.reference.submodular import facility_location_cmi_value, greedy_plain, log_det_cmi_value

from mqnet.models.head import HeadConfig, encode, fit_head
from mqnet.numerics.gradients import Factored, output_gradients
from mqnet.numerics.kcentre import k_centre_greedy
from mqnet.numerics.kmeanspp import k_means_plus_plus
from mqnet.numerics.submodular_facility import facility_location_cmi
from mqnet.numerics.submodular_logdet import log_det_cmi

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def features(data_folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.from_numpy(np.load(data_folder / "embeddings/cifar10_train.npy")[:900].astype(np.float32))
    y = torch.from_numpy(np.load(data_folder / "embeddings/cifar10_train_labels.npy")[:900].astype(np.int64))
    x[500:520] = x[480:500]  # some items twice
    return x, y


@pytest.fixture(scope="module")
def gradients(features: tuple[torch.Tensor, torch.Tensor]) -> tuple[Factored, Factored, Factored]:
    """Pool, labelled known and labelled OOD items as `similar` sees them: 4 known classes, a fifth output for junk."""
    x, y = features
    labels = torch.where(y < 4, y, 4)
    head = fit_head(x[:100], labels[:100], 5, HeadConfig(hidden=16), torch.Generator().manual_seed(0))
    encoded = encode(head, x)
    known = labels[:100] < 4

    def of(rows: torch.Tensor, true: torch.Tensor | None) -> Factored:
        return Factored(output_gradients(encoded["logits"][rows], true), encoded["features"][rows])

    every = torch.arange(len(x))
    pool = of(every[100:], None)
    return pool, of(every[:100][known], labels[:100][known]), of(every[:100][~known], labels[:100][~known])


def test_k_centre(features) -> None:
    x, _ = features
    assert k_centre_greedy(x[100:], x[:100], 200).tolist() == k_centre_plain(x[100:], x[:100], 200)


def test_k_means_plus_plus(gradients) -> None:
    pool, _, _ = gradients
    fast = k_means_plus_plus(pool.a, pool.h, 150, torch.Generator().manual_seed(7)).tolist()
    assert fast == k_means_plus_plus_plain(pool.a, pool.h, 150, torch.Generator().manual_seed(7))


@pytest.mark.parametrize(
    ("fast", "value", "n"),
    [(log_det_cmi, log_det_cmi_value, 8), (facility_location_cmi, facility_location_cmi_value, 15)],
)
def test_submodular(gradients, fast, value, n: int) -> None:
    pool, query, private = gradients
    some = pool.take(torch.arange(0, 800, 6))
    plain = greedy_plain(lambda rows: value(some, query, private, rows), len(some.a), n)
    assert len(plain) == n
    assert fast(some, query, private, n).tolist() == plain
