"""Laws of the MLP head: exact gradients, an untouched random stream, chunk-free rows, sane degenerate cases."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from mqnet.errors import ConfigError, InputError, StoreError
from mqnet.models import head as module
from mqnet.models.head import Head, HeadConfig, encode, fit_head, mc_logits

QUICK = HeadConfig(hidden=16, n_steps=40, batch_size=16)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(n: int, n_classes: int, d: int = 12, *, spread: float = 0.5, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Gaussian classes around orthogonal means of length 3, shifted off the origin; labels cycle 0..K-1."""
    labels = torch.arange(n) % n_classes
    return 5.0 + 3.0 * torch.eye(d)[labels] + spread * torch.randn(n, d, generator=seeded(seed)), labels


def accuracy(head: Head, features: Tensor, labels: Tensor) -> float:
    return float((encode(head, features)["logits"].argmax(1) == labels).float().mean())


def test_gradients_equal_autograd() -> None:
    net, branch = module._Net(7, 5, 4, seeded()), module._Branch(5, seeded(1))
    for weight in (net.b1, net.b2, branch.b1):
        weight.normal_(generator=seeded(2))
    rows, mask = torch.randn(10, 7, generator=seeded(3)), (torch.rand(10, 5, generator=seeded(4)) > 0.3) / 0.7
    targets = torch.softmax(torch.randn(10, 4, generator=seeded(5)), 1)
    targets[6:] *= 0.5
    hidden, logits = net.forward(rows, mask)
    losses = functional.cross_entropy(logits, targets, reduction="none")
    branch_gradients, into_hidden = branch.gradients(hidden, losses)
    gradients = net.gradients(rows, mask, hidden, logits, targets, into_hidden)

    w1, b1, w2, b2 = (weight.clone().requires_grad_() for weight in net.weights)
    v1, c1, v2 = (weight.clone().requires_grad_() for weight in branch.weights)
    slow_hidden = torch.relu(rows @ w1 + b1) * mask
    slow_losses = functional.cross_entropy(slow_hidden @ w2 + b2, targets, reduction="none")
    predicted = torch.relu(slow_hidden @ v1 + c1) @ v2
    sign = torch.sign(slow_losses[:5] - slow_losses[5:]).detach()
    ranking = functional.relu(1.0 - sign * (predicted[:5] - predicted[5:])).mean()
    (slow_losses.mean() + ranking).backward()
    pairs = zip((*gradients, *branch_gradients), (w1, b1, w2, b2, v1, c1, v2), strict=True)
    for fast, slow in pairs:
        torch.testing.assert_close(fast, slow.grad, rtol=1e-4, atol=1e-6)


def test_loss_branch_leaves_the_logits_and_the_stream_alone() -> None:
    features, labels = blobs(40, 4)
    heads: list[Head] = []
    after: list[Tensor] = []
    for mode in ("off", "detached", "joint"):
        generator = seeded(7)
        heads.append(fit_head(features, labels, 4, HeadConfig(loss_prediction=mode), generator))
        after.append(torch.rand(3, generator=generator))
    off, detached, joint = (encode(head, features) for head in heads)
    assert torch.equal(off["logits"], detached["logits"])
    assert not torch.equal(off["logits"], joint["logits"])
    assert torch.equal(after[0], after[1])
    assert torch.equal(after[0], after[2])
    assert not off["predicted_loss"].any()
    assert detached["predicted_loss"].std() > 0


def test_predicted_loss_ranks_the_hard_items_first() -> None:
    features, labels = blobs(400, 3, spread=1.8)
    head = fit_head(features[:200], labels[:200], 3, HeadConfig(n_steps=400), seeded())
    columns = encode(head, features[200:])
    losses = functional.cross_entropy(columns["logits"], labels[200:], reduction="none")
    order = columns["predicted_loss"].argsort(descending=True)
    assert losses[order[:50]].mean() > 2.0 * losses[order[-50:]].mean()


def test_same_seed_same_head_and_no_global_randomness() -> None:
    features, labels = blobs(30, 3)
    before = torch.random.get_rng_state()
    first, second = (fit_head(features, labels, 3, QUICK, seeded(3)) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    for name, tensor in first.to_tensors().items():
        assert torch.equal(tensor, second.to_tensors()[name])
    assert not torch.equal(first.w1, fit_head(features, labels, 3, QUICK, seeded(4)).w1)


def test_learns_from_five_labels_a_class() -> None:
    features, labels = blobs(420, 4)
    assert accuracy(fit_head(features[:20], labels[:20], 4, HeadConfig(), seeded()), features[20:], labels[20:]) > 0.97


def test_scale_and_shift_of_the_features_do_not_matter() -> None:
    features, labels = blobs(60, 3)
    plain = encode(fit_head(features, labels, 3, QUICK, seeded()), features)["logits"]
    moved = encode(fit_head(100.0 * features - 40.0, labels, 3, QUICK, seeded()), 100.0 * features - 40.0)["logits"]
    torch.testing.assert_close(plain, moved, rtol=1e-3, atol=1e-3)


def test_rows_do_not_depend_on_the_chunk() -> None:
    features, labels = blobs(120, 4)
    head = fit_head(features, labels, 4, QUICK, seeded())
    whole, chunks = encode(head, features), [encode(head, chunk) for chunk in features.split(17)]
    for name in ("logits", "features", "predicted_loss"):
        torch.testing.assert_close(whole[name], torch.cat([c[name] for c in chunks]), rtol=1e-5, atol=1e-5)
    assert whole["logits"].shape == (120, 4)
    assert whole["features"].shape == (120, 16)
    assert whole["predicted_loss"].shape == (120,)


def test_logits_are_the_formula_of_the_docstring_in_float64() -> None:
    features, labels = blobs(50, 3)
    head = fit_head(features, labels, 3, QUICK, seeded())
    w = {name: tensor.double() for name, tensor in head.to_tensors().items()}
    hidden = torch.relu((features.double() - w["mean"]) / w["scale"] @ w["w1"] + w["b1"])
    logits = encode(head, features)["logits"].double()
    torch.testing.assert_close(logits, hidden @ w["w2"] + w["b2"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_half_precision_input_gives_float32_columns(precision: module.Precision) -> None:
    features, labels = blobs(200, 4)
    config = HeadConfig(precision=precision)
    head = fit_head(features.half(), labels, 4, config, seeded())
    columns = encode(head, features.half())
    assert {tensor.dtype for tensor in (columns["logits"], columns["features"])} == {torch.float32}
    full = encode(fit_head(features, labels, 4, HeadConfig(), seeded()), features)["logits"]
    assert (columns["logits"] - full).abs().max() < 0.15


def test_stored_head_is_flat_tensors_and_comes_back() -> None:
    features, labels = blobs(30, 3)
    head = fit_head(features, labels, 3, QUICK, seeded())
    stored = {name: tensor.clone() for name, tensor in head.to_tensors().items()}
    assert torch.equal(encode(Head.from_tensors(stored), features)["logits"], encode(head, features)["logits"])
    with pytest.raises(StoreError, match="loss_w2"):
        Head.from_tensors({name: tensor for name, tensor in stored.items() if name != "loss_w2"})


@pytest.mark.parametrize(("n", "n_classes"), list(itertools.product([1, 2, 3], [1, 2, 10])))
def test_a_handful_of_labels_gives_finite_columns(n: int, n_classes: int) -> None:
    features, _ = blobs(n, 1, d=8)
    features[:, 3] = 1.0  # constant among the labelled, not in the pool
    labels = torch.zeros(n, dtype=torch.long)
    columns = encode(fit_head(features, labels, n_classes, QUICK, seeded()), 50.0 * torch.randn(20, 8))
    assert columns["logits"].shape == (20, n_classes)
    assert columns["logits"].isfinite().all()
    assert columns["logits"].abs().max() < 1e4
    assert columns["predicted_loss"].isfinite().all()


@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_identical_rows_are_no_accident(constant: float) -> None:
    features = torch.full((6, 5), constant)
    head = fit_head(features, torch.arange(6) % 2, 2, QUICK, seeded())
    assert float(head.scale) == 1.0
    assert encode(head, features)["logits"].isfinite().all()


def test_extra_class_keeps_predictions_over_the_known_classes() -> None:
    features, labels = blobs(90, 3)
    known = labels < 2
    unknown = features[~known]
    config = HeadConfig(unknown_aware="extra_class")
    head = fit_head(features[known], labels[known], 2, config, seeded(), unknown=unknown)
    assert encode(head, features)["logits"].shape == (90, 2)
    assert accuracy(head, features[known], labels[known]) == 1.0


def test_outlier_exposure_flattens_the_unknown() -> None:
    features, labels = blobs(90, 3)
    features[labels == 2] = features[labels == 2] + 1.5 * torch.eye(12)[0]  # leans towards class 0
    known, unknown = labels < 2, features[labels == 2]
    confidence: list[float] = []
    for mode in ("off", "outlier_exposure"):
        head = fit_head(features[known], labels[known], 2, HeadConfig(unknown_aware=mode), seeded(), unknown=unknown)
        confidence.append(float(torch.softmax(encode(head, unknown)["logits"], 1).amax(1).mean()))
        assert accuracy(head, features[known], labels[known]) == 1.0
    assert confidence[0] > 0.8
    assert confidence[1] < 0.65


def test_unknown_rows_are_ignored_when_training_is_not_aware_of_them() -> None:
    features, labels = blobs(60, 3)
    without = fit_head(features, labels, 3, QUICK, seeded())
    given = fit_head(features, labels, 3, QUICK, seeded(), unknown=features + 9.0)
    assert torch.equal(without.w2, given.w2)


def test_dropout_samples_share_a_mask_and_average_to_the_mean_logits() -> None:
    features, labels = blobs(60, 3)
    head = fit_head(features, labels, 3, QUICK, seeded())
    samples = mc_logits(head, features, 500, seeded(5))
    assert samples.shape == (500, 60, 3)
    parts = torch.cat([mc_logits(head, chunk, 500, seeded(5)) for chunk in features.split(13)], 1)
    torch.testing.assert_close(samples, parts, rtol=1e-4, atol=1e-4)
    mean_error = (samples.mean(0) - encode(head, features)["logits"]).abs().max()
    assert mean_error < 6.0 * float(samples.std(0).max()) / 500**0.5
    assert samples.std(0).min() > 0


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), "at least one"),
        (torch.randn(2, 4), torch.tensor([0, 3]), r"0\.\.2"),
        (torch.randn(2, 4), torch.tensor([0, -1]), r"0\.\.2"),
        (torch.randn(2, 4), torch.tensor([0]), "2 rows"),
        (torch.full((2, 4), float("nan")), torch.tensor([0, 1]), "NaN"),
    ],
)
def test_bad_input_is_named(rows: Tensor, labels: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_head(rows, labels, 3, QUICK, seeded())


@pytest.mark.parametrize("wrong", [{"hidden": 0}, {"n_steps": 0}, {"dropout": 1.0}])
def test_bad_config_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        HeadConfig(**wrong)  # pyright: ignore[reportArgumentType]
