"""Purity from labelled items: against scikit-learn, by hand, and with few answers or none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.covariance import shrunk_covariance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from mqnet.errors import ConfigError, PluginError
from mqnet.ids import ItemIds
from mqnet.registry import INFORMATIVENESS, PURITY
from mqnet.rng import Key
from mqnet.view import LabelledView, RoundView

NAMES = ("csi", "contrast", "knn", "mahalanobis", "detector")
DTYPES = [torch.float16, torch.float32, torch.float64]
COLUMNS = ("embedding", "contrastive", "features")


def view_of(pool: Tensor, labelled: Tensor, answers: list[int] | Tensor, n_classes: int = 3) -> RoundView:
    answers = torch.as_tensor(answers, dtype=torch.long)
    bought = LabelledView(
        ItemIds.of([f"l{i:04d}" for i in range(len(answers))]), dict.fromkeys(COLUMNS, labelled), answers
    )
    ids = ItemIds.of([f"p{i:06d}" for i in range(len(pool))])
    return RoundView(ids, dict.fromkeys(COLUMNS, pool), bought, n_classes, key=Key(5))


def normal(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def blobs(n: int, seed: int = 0, d: int = 8) -> tuple[Tensor, Tensor]:
    """Classes 0, 1, 2 and junk around four axes."""
    answers = torch.arange(n) % 4 - 1
    return 3.0 * torch.eye(d, dtype=torch.float64)[answers + 1] + 0.5 * normal(n, d, seed), answers


def scored(name: str, view: RoundView, **options: object) -> Tensor:
    room = INFORMATIVENESS if name == "distance" else PURITY
    return room.score(name, options)(view)


@pytest.fixture(params=DTYPES, ids=str)
def case(request: pytest.FixtureRequest) -> RoundView:
    (pool, _), (labelled, answers) = blobs(600), blobs(41, seed=1)
    return view_of(pool.to(request.param), labelled.to(request.param), answers)


def split(view: RoundView) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pool, labelled IN and labelled OOD vectors in float64."""
    labelled = view.labelled.column("embedding").double().numpy()
    known = view.labelled.known.numpy()
    return view.column("embedding").double().numpy(), labelled[known], labelled[~known]


def test_csi_and_contrast_agree_with_scikit_learn(case: RoundView) -> None:
    pool, known, junk = split(case)
    to_known, to_junk = cosine_similarity(pool, known).max(1), cosine_similarity(pool, junk).max(1)
    length = np.linalg.norm(pool, axis=1)
    for reference, slow in {"in": to_known, "ood": -to_junk, "both": to_known - to_junk}.items():
        np.testing.assert_allclose(scored("csi", case, reference=reference), slow, atol=1e-5)
        np.testing.assert_allclose(scored("csi", case, reference=reference, norm="on"), slow * length, atol=1e-4)
    np.testing.assert_allclose(scored("contrast", case), to_known - to_junk, atol=1e-5)


@pytest.mark.parametrize("k", [1, 5, 500])
def test_knn_agrees_with_scikit_learn(case: RoundView, k: int) -> None:
    pool, known, _ = split(case)
    for unit in (True, False):
        if unit:
            pool, known = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (pool, known))
        else:
            pool, known, _ = split(case)
        place = min(k, len(known))
        slow = NearestNeighbors(n_neighbors=place).fit(known).kneighbors(pool)[0][:, -1]
        np.testing.assert_allclose(scored("knn", case, k=k, unit=unit), -slow, rtol=1e-4, atol=1e-5)


def test_distance_agrees_with_scikit_learn(case: RoundView) -> None:
    pool, known, junk = split(case)
    slow = NearestNeighbors(n_neighbors=1).fit(np.concatenate([known, junk])).kneighbors(pool)[0][:, 0]
    np.testing.assert_allclose(scored("distance", case), slow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_labelled", [7, 41])  # 5 known items in 8 dimensions, and enough of them
@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_mahalanobis_agrees_with_scikit_learn(dtype: torch.dtype, shrinkage: float, n_labelled: int) -> None:
    (pool, _), (labelled, answers) = blobs(200), blobs(n_labelled, seed=1)
    pool, labelled = pool.to(dtype), labelled.to(dtype)
    result = scored("mahalanobis", view_of(pool, labelled, answers), shrinkage=shrinkage)
    rows, items = pool.double().numpy(), labelled.double().numpy()
    means = [items[answers.numpy() == k].mean(0) for k in range(3)]
    centred = np.concatenate([items[answers.numpy() == k] - means[k] for k in range(3)])
    inverse = np.linalg.inv(shrunk_covariance(centred.T @ centred / len(centred), shrinkage=shrinkage))
    slow = [-min(np.sqrt((x - m) @ inverse @ (x - m)) for m in means) for x in rows]
    np.testing.assert_allclose(result, slow, rtol=1e-4)


def test_mahalanobis_without_any_spread_is_euclidean() -> None:
    pool, labelled = normal(50, 6), normal(3, 6, seed=1)
    for answers in ([0, 1, 2], [1, -1, -1]):
        seen = labelled[torch.tensor(answers) >= 0].numpy()
        slow = NearestNeighbors(n_neighbors=1).fit(seen).kneighbors(pool.numpy())[0][:, 0]
        np.testing.assert_allclose(scored("mahalanobis", view_of(pool, labelled, answers)), -slow, rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e6])
def test_mahalanobis_does_not_know_the_unit_of_the_features(unit: float) -> None:
    (pool, _), (labelled, answers) = blobs(100), blobs(40, seed=1)
    plain = scored("mahalanobis", view_of(pool, labelled, answers))
    torch.testing.assert_close(scored("mahalanobis", view_of(pool * unit, labelled * unit, answers)), plain)


def test_by_hand() -> None:
    pool = torch.tensor([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    view = view_of(pool, torch.tensor([[2.0, 0.0], [0.0, 1.0]]), [0, -1])
    torch.testing.assert_close(scored("contrast", view), torch.tensor([1.0, -0.2, 0.0]))
    torch.testing.assert_close(scored("csi", view, reference="in"), torch.tensor([1.0, 0.6, 0.0]))
    torch.testing.assert_close(scored("csi", view, reference="ood"), torch.tensor([0.0, -0.8, 0.0]))
    torch.testing.assert_close(scored("csi", view, reference="in", norm="on"), torch.tensor([1.0, 3.0, 0.0]))
    torch.testing.assert_close(scored("knn", view), -torch.tensor([0.0, 0.8**0.5, 1.0]))
    torch.testing.assert_close(scored("knn", view, unit=False), -torch.tensor([1.0, 17.0**0.5, 2.0]))
    torch.testing.assert_close(scored("mahalanobis", view), -torch.tensor([1.0, 17.0**0.5, 2.0]))
    torch.testing.assert_close(scored("distance", view), torch.tensor([1.0, 17.0**0.5, 1.0]))


@pytest.mark.parametrize("outputs", ["classes", "binary"])
def test_detector_ranks_like_a_logistic_regression_and_gives_probabilities(outputs: str) -> None:
    (pool, truth), (labelled, answers) = blobs(2000), blobs(60, seed=1)
    result = scored("detector", view_of(pool, labelled, answers), outputs=outputs)
    assert 0.0 <= float(result.min()) < 0.2
    assert 0.8 < float(result.max()) <= 1.0
    known = truth >= 0
    slow = LogisticRegression().fit(labelled, answers >= 0).predict_proba(pool)[:, 1]
    assert roc_auc_score(known, result) > roc_auc_score(known, slow) - 0.005
    assert np.corrcoef(result, slow)[0, 1] > 0.9
    assert abs(float(result.mean()) - float(known.double().mean())) < 0.05


def test_detector_draws_from_the_key_of_the_view_alone() -> None:
    (pool, _), (labelled, answers) = blobs(50), blobs(30, seed=1)
    before = torch.random.get_rng_state()
    first, second = (scored("detector", view_of(pool, labelled, answers)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.random.get_rng_state())


def test_without_junk_answers() -> None:
    pool, labelled = normal(30, 4), normal(6, 4, seed=1)
    view = view_of(pool, labelled, [0, 1, 2, 0, 1, 2])
    similarity = cosine_similarity(pool, labelled).max(1)
    for result in (scored("contrast", view), scored("csi", view), scored("csi", view, reference="in")):
        np.testing.assert_allclose(result, similarity, atol=1e-5)
    assert torch.equal(scored("detector", view), scored("knn", view))
    assert not scored("csi", view, reference="ood").any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answers", [[], [-1], [-1, -1, -1]])
def test_constant_without_any_known_item(name: str, answers: list[int]) -> None:
    result = scored(name, view_of(normal(30, 4), normal(len(answers), 4, seed=1), answers))
    assert result.shape == (30,)
    assert torch.equal(result, torch.zeros(30))


def test_distance_is_constant_without_labels() -> None:
    assert torch.equal(scored("distance", view_of(normal(5, 4), normal(0, 4), [])), torch.zeros(5))


@pytest.mark.parametrize("name", [*NAMES, "distance"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("answers", [[0], [2, -1], [0, 0, 1, -1], [0] * 4 + [-1] * 4])
@pytest.mark.parametrize("kind", ["zeros", "constant column", "one class", "large", "tiny"])
def test_awkward_vectors_give_finite_scores(name: str, dtype: torch.dtype, answers: list[int], kind: str) -> None:
    pool, labelled = normal(40, 5), normal(len(answers), 5, seed=1)
    if kind == "zeros":
        pool[::2], labelled[0] = 0.0, 0.0
    elif kind == "constant column":
        pool[:, 2], labelled[:, 2] = 7.0, 7.0
    elif kind in ("large", "tiny"):
        size = 1e4 if kind == "large" else 1e-6
        pool, labelled = pool * size, labelled * size
    view = view_of(
        pool.to(dtype), labelled.to(dtype), answers, n_classes=1 if kind == "one class" and max(answers) == 0 else 3
    )
    assert scored(name, view).isfinite().all()


@pytest.mark.parametrize("name", [*NAMES, "distance"])
@pytest.mark.parametrize("n", [0, 1])
def test_empty_and_single_item_pools(name: str, n: int) -> None:
    labelled, answers = blobs(12, seed=1)
    assert scored(name, view_of(normal(n, 8), labelled, answers)).shape == (n,)


@pytest.mark.parametrize("name", [*NAMES, "distance"])
def test_order_chunks_and_input_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (pool, _), (labelled, answers) = blobs(700), blobs(40, seed=1)
    pool, labelled = pool.float(), labelled.float()
    copies = pool.clone(), labelled.clone()
    whole = scored(name, view_of(pool, labelled, answers))
    order = torch.randperm(700, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        scored(name, view_of(pool[order], labelled, answers)), whole[order], rtol=1e-5, atol=1e-5
    )
    for module in ("knn", "detector", "mahalanobis"):
        monkeypatch.setattr(f"mqnet.purity.{module}.SPAN", 64)
    torch.testing.assert_close(scored(name, view_of(pool, labelled, answers)), whole, rtol=1e-5, atol=1e-5)
    assert torch.equal(pool, copies[0])
    assert torch.equal(labelled, copies[1])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_known_items_are_purer(name: str, dtype: torch.dtype) -> None:
    (pool, truth), (labelled, answers) = blobs(800), blobs(60, seed=1)
    scores = scored(name, view_of(pool.to(dtype), labelled.to(dtype), answers))
    assert roc_auc_score(truth >= 0, scores) > 0.9


def test_distance_asks_what_is_far_from_everything_labelled() -> None:
    scores = scored("distance", view_of(torch.tensor([[0.1], [5.0]]), torch.tensor([[0.0], [0.2]]), [0, -1]))
    assert scores[1] > scores[0]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("csi", {"reference": "all"}),
        ("csi", {"norm": "yes"}),
        ("mahalanobis", {"shrinkage": 0.0}),
        ("detector", {"outputs": "two"}),
    ],
)
def test_wrong_options_are_named(name: str, wrong: dict[str, object]) -> None:
    with pytest.raises((ConfigError, PluginError), match=next(iter(wrong))):
        scored(name, view_of(*blobs(8)[:1], *blobs(8)), **wrong)
