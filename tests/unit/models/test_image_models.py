"""Laws of the image models: exact columns, an untouched random stream, states that come back, sane degenerate cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from mqnet.errors import ConfigError, InputError, PoolError, StoreError
from mqnet.ids import ItemIds
from mqnet.models.base import TrainingSet
from mqnet.models.fitted_images import MC_SAMPLES, FittedImages, pixel_statistics
from mqnet.models.images import COLUMNS, ResNet8
from mqnet.models.mlp import MlpHead
from mqnet.models.target_net import TargetNet, load_tensors
from mqnet.registry import INFORMATIVENESS, MODEL, PURITY
from mqnet.rng import Key
from mqnet.view import LabelledView, RoundView
from pictures import pictures

SHORT = ResNet8(n_steps=12, batch_size=16, device="cpu", precision="float32")
LOGITS = frozenset({"logits"})
NO_IMAGES = torch.empty(0, 3, 16, 16, dtype=torch.uint8)


def training(n: int = 40, n_classes: int = 3, *, unknown: int = 0, seed: int = 1) -> TrainingSet:
    labels = torch.arange(n) % n_classes
    junk = pictures([7] * unknown, seed=seed + 1) if unknown else NO_IMAGES
    return TrainingSet(pictures(labels.numpy(), seed=seed), labels, junk, n_classes)


@pytest.fixture(scope="module")
def short() -> FittedImages:
    return SHORT.fit(training(), frozenset(), Key(3))


def logits(model: FittedImages, images: Tensor) -> Tensor:
    return model.encode(images, LOGITS)["logits"]


def slow_net(model: FittedImages) -> TargetNet:
    """The net with its normalisation in place, from the stored tensors."""
    state = model.state()
    net = TargetNet("resnet8", 16, len(state["classifier.bias"]), Key(9), branch="branch.outer.weight" in state)
    load_tensors(net, {name: state[name] for name in net.state_dict()})
    return net.eval()


def slow_inputs(model: FittedImages, images: Tensor) -> Tensor:
    state = model.state()
    mean, deviation = (state[name].double().view(1, 3, 1, 1) for name in ("mean", "deviation"))
    return ((images.double() / 255.0 - mean) / deviation).float()


def test_learns_textures() -> None:
    fitted = replace(SHORT, n_steps=80, precision="auto").fit(training(90), frozenset(), Key(0))
    labels = torch.arange(120) % 3
    right = logits(fitted, pictures(labels.numpy(), seed=5)).argmax(1) == labels
    assert right.float().mean() > 0.9


def test_columns_are_those_of_the_net_before_it_was_folded(short: FittedImages) -> None:
    images = pictures([0, 1, 2] * 4, seed=6)
    net, columns = slow_net(short), short.encode(images, COLUMNS)
    with torch.no_grad():
        features = net.backbone.features(slow_inputs(short, images))
        said = net(slow_inputs(short, images))
    assert said.predicted is not None
    torch.testing.assert_close(columns["logits"].double(), said.logits.double(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(columns["features"].double(), features.pooled.double(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(columns["predicted_loss"].double(), said.predicted.double(), rtol=1e-3, atol=1e-4)
    clipped = columns["features"].clamp_max(short.state()["react_bound"])
    weight, bias = (short.state()[f"classifier.{name}"] for name in ("weight", "bias"))
    torch.testing.assert_close(columns["react_logits"], functional.linear(clipped, weight, bias))
    assert columns["embedding"] is columns["features"]  # under two names, kept once
    assert {column.dtype for column in columns.values()} == {torch.float32}


def test_odin_moves_the_pixels_against_the_gradient_of_the_whole_net(short: FittedImages) -> None:
    model = replace(short, odin_temperature=10.0, odin_perturbation=0.01)
    images, net = pictures([0, 1, 2, 7] * 3, seed=7), slow_net(short)
    x = slow_inputs(short, images).requires_grad_()
    torch.log_softmax(net(x).logits.double() / 10.0, 1).amax(1).sum().backward()
    assert x.grad is not None
    deviation = short.state()["deviation"].view(1, 3, 1, 1)
    with torch.no_grad():
        expected = net(x + 0.01 / deviation * x.grad.sign()).logits.double() / 10.0
    found = model.encode(images, frozenset({"odin_logits"}))["odin_logits"].double()
    # a pixel whose gradient is 0 to within rounding may move the other way
    torch.testing.assert_close(found, expected, rtol=0.02, atol=2e-3)
    still = replace(model, odin_perturbation=0.0).encode(images, frozenset({"odin_logits"}))["odin_logits"]
    torch.testing.assert_close(still, logits(short, images) / 10.0, rtol=1e-4, atol=1e-5)
    assert (torch.softmax(found, 1).amax(1) > torch.softmax(still.double(), 1).amax(1)).all()


def test_react_clips_at_a_percentile_of_the_labelled_activations(short: FittedImages) -> None:
    activations = short.encode(training().inputs, frozenset({"features"}))["features"]
    assert float(short.state()["react_bound"]) == pytest.approx(np.percentile(activations, 90.0))


def test_dropout_samples_share_their_masks(short: FittedImages) -> None:
    images = pictures([0, 1, 2] * 5, seed=8)
    columns = short.encode(images, COLUMNS)
    samples = columns["mc_logits"]
    assert samples.shape == (15, MC_SAMPLES, 3)
    assert samples.std(1).min() > 0
    # 0.3 where the net was trained without dropout; the mean over masks is the mean over features kept and scaled
    kept = (short._masks > 0).float().mean()
    assert kept == pytest.approx(0.7, abs=0.03)
    weight, bias = (short.state()[f"classifier.{name}"] for name in ("weight", "bias"))
    expected = torch.einsum("td,nd,kd->ntk", short._masks, columns["features"], weight) + bias
    torch.testing.assert_close(samples, expected, rtol=1e-4, atol=1e-5)


def test_rows_do_not_depend_on_the_chunk(short: FittedImages) -> None:
    images = pictures([0, 1, 2, 3, 4] * 6, seed=9)
    whole, parts = short.encode(images, COLUMNS), [short.encode(part, COLUMNS) for part in images.split(7)]
    for name in COLUMNS:
        torch.testing.assert_close(whole[name], torch.cat([part[name] for part in parts]), rtol=1e-4, atol=1e-5)


def test_no_items_give_empty_columns(short: FittedImages) -> None:
    columns = short.encode(NO_IMAGES, COLUMNS)
    assert {name: tuple(column.shape) for name, column in columns.items()} == {
        "logits": (0, 3), "features": (0, 64), "embedding": (0, 64), "predicted_loss": (0,), "odin_logits": (0, 3),
        "react_logits": (0, 3), "mc_logits": (0, MC_SAMPLES, 3),
    }  # fmt: skip


def test_a_large_image_goes_through_the_large_stem() -> None:
    images = torch.randint(256, (3, 3, 128, 128), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    train = TrainingSet(images, torch.tensor([0, 1, 1]), images[:0], 2)
    model = ResNet8(n_steps=2, batch_size=2, device="cpu").fit(train, COLUMNS, Key(0))
    assert model.state()["backbone.stem.0.weight"].shape == (16, 3, 7, 7)
    assert model.encode(images, COLUMNS)["mc_logits"].shape == (3, MC_SAMPLES, 2)


def test_a_state_is_plain_tensors_and_comes_back(short: FittedImages) -> None:
    state, images = short.state(), pictures([0, 1, 7], seed=10)
    assert "backbone.stem.1.running_mean" in state  # the buffers of the normalisation are in it
    assert all(type(tensor) is Tensor and tensor.is_contiguous() for tensor in state.values())
    back = SHORT.restore({name: tensor.clone() for name, tensor in state.items()})
    for name in COLUMNS:
        assert torch.equal(back.encode(images, COLUMNS)[name], short.encode(images, COLUMNS)[name])
    with pytest.raises(StoreError, match="mc_seed"):
        SHORT.restore({name: tensor for name, tensor in state.items() if name != "mc_seed"})
    with pytest.raises(StoreError, match="resnet18"):
        MODEL.make("resnet18", {"device": "cpu"}).restore(state).encode(images, LOGITS)


def test_same_key_same_model_and_no_global_randomness(short: FittedImages) -> None:
    before = torch.random.get_rng_state()
    again, other = SHORT.fit(training(), frozenset(), Key(3)), SHORT.fit(training(), frozenset(), Key(4))
    assert torch.equal(before, torch.random.get_rng_state())
    for name, tensor in short.state().items():
        assert torch.equal(tensor, again.state()[name]), name
    assert not torch.equal(short.state()["classifier.weight"], other.state()["classifier.weight"])


def test_loss_branch_leaves_the_logits_alone_unless_it_is_asked_for(short: FittedImages) -> None:
    images, wanted = pictures([0, 1, 2], seed=11), frozenset({"predicted_loss"})
    off = replace(SHORT, loss_prediction="off").fit(training(), frozenset(), Key(3))
    joint = SHORT.fit(training(), wanted, Key(3))
    assert torch.equal(logits(off, images), logits(short, images))
    assert not torch.equal(logits(joint, images), logits(short, images))
    assert not off.encode(images, wanted)["predicted_loss"].any()
    assert replace(SHORT, loss_prediction="off").provides == SHORT.provides - wanted == COLUMNS - wanted
    assert short.encode(images, wanted)["predicted_loss"].std() > 0


def test_unknown_items_are_ignored_unless_the_training_is_aware_of_them(short: FittedImages) -> None:
    train = training(unknown=10)
    images = pictures([7] * 10, seed=12)
    assert torch.equal(logits(SHORT.fit(train, frozenset(), Key(3)), images), logits(short, images))
    confidence: dict[str, float] = {}
    for mode in ("off", "outlier_exposure", "extra_class"):
        model = replace(SHORT, n_steps=40, unknown_aware=mode).fit(train, frozenset(), Key(3))
        confidence[mode] = float(torch.softmax(logits(model, images), 1).amax(1).mean())
        assert logits(model, images).shape == (10, 3)
    assert confidence["outlier_exposure"] < confidence["off"] - 0.1


def test_before_any_known_answer_every_item_is_alike() -> None:
    images = pictures([0, 1, 7], seed=13)
    model = SHORT.fit(TrainingSet(NO_IMAGES, torch.empty(0, dtype=torch.long), images, 4), COLUMNS, Key(0))
    for fitted in (model, SHORT.restore(model.state())):
        for name, column in fitted.encode(images, COLUMNS).items():
            assert len(column) == 3
            assert (column == column[0]).all(), name
        assert logits(fitted, images).shape == (3, 4)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_labels_gives_finite_columns(n: int) -> None:
    train = TrainingSet(torch.zeros(n, 3, 16, 16, dtype=torch.uint8), torch.zeros(n, dtype=torch.long), NO_IMAGES, 2)
    columns = replace(SHORT, n_steps=4).fit(train, COLUMNS, Key(0)).encode(pictures([0, 1, 2]), COLUMNS)
    assert all(bool(column.isfinite().all()) for column in columns.values())
    assert columns["logits"].shape == (3, 2)


def test_pixel_statistics_are_numpys() -> None:
    images = pictures([0, 1, 2])
    mean, deviation = pixel_statistics(images)
    values = images.double().numpy() / 255.0
    np.testing.assert_allclose(mean, values.mean((0, 2, 3)), atol=1e-6)
    np.testing.assert_allclose(deviation, values.std((0, 2, 3)), atol=1e-6)
    assert pixel_statistics(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))[1].tolist() == [0.25] * 3


def test_every_score_works_or_is_refused_by_what_it_lacks(short: FittedImages) -> None:
    images, answers = pictures([0, 1, 2, 7, 8] * 6, seed=14), torch.arange(12) % 4 - 1
    bought = pictures([9 if answer < 0 else answer for answer in answers.tolist()], seed=15)
    ids = ItemIds.of([f"i{n:02d}" for n in range(42)])
    labelled = LabelledView(ids.take(slice(30, 42)), short.encode(bought, COLUMNS), answers)
    view = RoundView(ids.take(slice(0, 30)), short.encode(images, COLUMNS), labelled, n_classes=3)
    worked: set[str] = set()
    for registry in (PURITY, INFORMATIVENESS):
        for name in registry.names():
            score = registry.score(name)
            if score.needs <= COLUMNS:
                assert score(view).isfinite().all()
                worked.add(name)
            else:
                assert score.needs - COLUMNS <= {"contrastive", "contrastive_semantic"}
    assert {"odin", "bald", "gradient_norm", "react", "mahalanobis", "knn", "detector", "evidence"} <= worked


def test_inputs_of_another_kind_are_refused_by_name(short: FittedImages) -> None:
    with pytest.raises(PoolError, match=r"takes images.*'head'"):
        SHORT.check_input(torch.zeros(1, 5))
    with pytest.raises(PoolError, match=r"takes vectors.*'resnet8'"):
        MlpHead().check_input(pictures([0]))
    with pytest.raises(PoolError, match=r"\[3, 16, 16\].*\[3, 8, 8\]"):
        short.encode(pictures([0], size=8), LOGITS)
    with pytest.raises(InputError, match=r"0\.\.2"):
        SHORT.fit(TrainingSet(pictures([0, 1]), torch.tensor([0, 3]), NO_IMAGES, 3), frozenset(), Key(0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_steps": 0}, "n_steps"),
        ({"batch_size": 1}, "batch_size"),
        ({"processes": 0}, "processes"),
        ({"dropout": 1.0}, "dropout"),
        ({"lr": 0.0}, "lr"),
        ({"momentum": 1.0}, "momentum"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"odin_temperature": 0.0}, "odin_temperature"),
        ({"odin_perturbation": -0.1}, "odin_perturbation"),
        ({"react_percentile": 0.0}, "react_percentile"),
    ],
)
def test_bad_options_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MODEL.make("resnet8", wrong)
