"""The contrastive coder's parts against slow references, and its training against itself: keyed, resumable, blind."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mqnet.data.images import ImagePool
from mqnet.data.pools import ArrayPool
from mqnet.errors import ConfigError, PoolError, StoreError
from mqnet.models.augment import all_rotations
from mqnet.models.checkpoints import Saver
from mqnet.models.contrastive.coder import CoderNet, restored
from mqnet.models.contrastive.config import CoderConfig
from mqnet.models.contrastive.lars import EPSILON, Lars
from mqnet.models.contrastive.loss import nt_xent, rotation_labels
from mqnet.models.contrastive.train import Images, begin, colours, train_coder
from mqnet.models.contrastive.views import random_views
from mqnet.models.devices import Engine
from mqnet.rng import Key

SMALL = CoderConfig(epochs=2, batch_size=4, precision="float32", projection=8, rotations=1)


def images(n=10, size=8, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, 3, size, size), dtype=np.uint8)


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# -- losses ------------------------------------------------------------------------------------------------------------


def nt_xent_by_loop(views, temperature):
    n, total = len(views), 0.0
    cosine = [[float(a @ b) / (float(a.norm()) * float(b.norm())) for b in views] for a in views]
    for i in range(n):
        partner = (i + n // 2) % n
        negatives = sum(math.exp(cosine[i][j] / temperature) for j in range(n) if j != i)
        total -= math.log(math.exp(cosine[i][partner] / temperature) / negatives)
    return total / n


@given(n=st.integers(1, 6), temperature=st.sampled_from([0.1, 0.5, 2.0]), seed=st.integers(0, 99))
def test_nt_xent_is_the_loops_value(n, temperature, seed):
    views = torch.randn(2 * n, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert float(nt_xent(views, temperature)) == pytest.approx(nt_xent_by_loop(views, temperature), rel=1e-9, abs=1e-12)


def test_nt_xent_of_perfect_and_of_hopeless_views():
    eye = torch.eye(4)
    pairs = torch.cat([eye, eye])  # partners alike, all others at right angles
    assert float(nt_xent(pairs, 0.5)) == pytest.approx(math.log(math.exp(2) + 6) - 2, rel=1e-6)
    alike = torch.ones(8, 3)
    assert float(nt_xent(alike, 0.5)) == pytest.approx(math.log(7), rel=1e-6)


def test_nt_xent_has_the_gradient_of_its_value():
    views = torch.randn(6, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    (gradient,) = torch.autograd.grad(nt_xent(views), views)
    step = 1e-2
    for i in range(6):
        for j in range(3):
            there, back = views.detach().double().clone(), views.detach().double().clone()
            there[i, j] += step
            back[i, j] -= step
            slope = (nt_xent_by_loop(there, 0.5) - nt_xent_by_loop(back, 0.5)) / (2 * step)
            assert float(gradient[i, j]) == pytest.approx(slope, abs=2e-4)


def test_rotation_labels_name_the_turns_of_the_views():
    # an image whose corner says how it is turned: brightest pixel top left, and no augmentation that hides it
    pool = torch.zeros(3, 3, 4, 4)
    pool[:, :, 0, 0] = 1.0
    views = torch.cat([all_rotations(pool), all_rotations(pool)])
    corners = {(0, 0): 0, (3, 0): 1, (3, 3): 2, (0, 3): 3}  # counter-clockwise from the top left
    found = []
    for view in views:
        row, column = divmod(int(view[0].flatten().argmax()), 4)
        found.append(corners[(row, column)])
    assert found == rotation_labels(3).tolist()


def test_views_pair_with_the_same_picture_and_stay_in_range():
    unit = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    for kind, n in (("simclr", 10), ("csi", 40)):
        views = random_views(unit, kind, SMALL, torch.Generator().manual_seed(3))
        assert views.shape == (n, 3, 8, 8)
        assert float(views.min()) >= 0.0
        assert float(views.max()) <= 1.0
        assert not torch.equal(views[: n // 2], views[n // 2 :])
    # pairs are views of one picture: of a grey picture, which neither flips nor turns change, both are grey alike
    flat = torch.stack([torch.full((3, 8, 8), level) for level in (0.2, 0.8)])
    views = random_views(flat, "csi", SMALL, torch.Generator().manual_seed(3)).mean(dim=(1, 2, 3))
    bright = (views > 0.5).tolist()
    assert bright[:8] == bright[8:] == [False, True] * 4


# -- optimiser and schedule --------------------------------------------------------------------------------------------


def test_lars_is_its_formula():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(4, 3, generator=generator), torch.randn(3, generator=generator), torch.zeros(2, 2)]
    weights = [w.clone() for w in start]
    lars = Lars(weights, trust=0.01, momentum=0.8, weight_decay=0.1)
    expected, velocity = [w.double().numpy().copy() for w in start], [np.zeros(w.shape) for w in start]
    for rate in (0.5, 0.3, 0.1):
        gradients = [torch.randn(w.shape, generator=generator) for w in start]
        lars.step(gradients, rate)
        for i, g in enumerate(gradients):
            g, w = g.double().numpy(), expected[i]
            local = 1.0
            if w.ndim > 1:
                norm_w, norm_g = np.sqrt((w**2).sum()), np.sqrt((g**2).sum())
                local = 0.01 * norm_w / (norm_g + 0.1 * norm_w + EPSILON) if norm_w > 0 else 1.0
                g = g + 0.1 * w
            velocity[i] = 0.8 * velocity[i] + rate * local * g
            expected[i] = w - velocity[i]
    for weight, value in zip(weights, expected, strict=True):
        np.testing.assert_allclose(weight.numpy(), value, rtol=1e-5, atol=1e-6)


def test_lars_stays_put_without_a_gradient():
    weights = [torch.ones(2, 2), torch.ones(2)]
    Lars(weights, weight_decay=0.0).step([torch.zeros(2, 2), torch.zeros(2)], 1.0)
    assert all(bool((w == 1).all()) for w in weights)


def test_the_rate_rises_and_falls():
    config = CoderConfig(lr=3.0, warmup=0.1, epochs=10, batch_size=10)
    rates = [config.rate(step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([0.3 * (i + 1) for i in range(10)])
    assert rates[10] == max(rates) == 3.0
    assert rates[55] == pytest.approx(1.5)
    assert rates[10:] == sorted(set(rates[10:]), reverse=True)
    assert 0 < rates[-1] < 0.01
    assert CoderConfig(warmup=0.0, lr=1.0).rate(0, 10) == 1.0


@pytest.mark.parametrize(
    "wrong", [{"epochs": 0}, {"lr": 0}, {"batchsize": 4}, {"net": "vgg"}, {"batch_size": 1}, {"device": "tpu"}]
)
def test_a_wrong_option_is_refused(wrong):
    with pytest.raises(ValidationError):
        CoderConfig(**wrong)


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csi", "simclr"])
def test_a_coder_is_a_function_of_the_pools_items_and_the_key(kind):
    pixels = images()
    names = [f"i{i}" for i in range(10)]
    coder = train_coder(ImagePool(pixels, names), kind, SMALL, Key(1))
    again = train_coder(ImagePool(pixels[::-1].copy(), names[::-1]), kind, SMALL, Key(1))
    other = train_coder(ImagePool(pixels, names), kind, SMALL, Key(2))
    assert same(coder.state(), again.state())
    assert not same(coder.state(), other.state())
    rows = coder.encode(torch.from_numpy(pixels))
    assert rows.shape == (10, 64)
    assert rows.isfinite().all()
    # each row by itself: what stands beside it changes rounding at most
    torch.testing.assert_close(coder.encode(torch.from_numpy(pixels[3:5])), rows[3:5], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["csi", "simclr"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_continued_from_any_step_is_the_same_training(kind, precision):
    pool, config = ImagePool(images()), SMALL.model_copy(update={"precision": precision})
    undisturbed = train_coder(pool, kind, config, Key(1)).state()
    for stop in (1, 3):
        half = begin(pool, kind, config, Key(1))
        for _ in range(stop):
            half.advance()
        saved = {name: tensor.clone() for name, tensor in half.state().items()}
        assert same(
            train_coder(pool, kind, config, Key(1), saver=Saver(Kept(saved), "a training")).state(), undisturbed
        )


class Kept:
    def __init__(self, saved=None):
        self.saved, self.n_saves = saved, 0

    def load(self, name):
        assert name == "a training"
        return self.saved

    def save(self, name, state):
        self.saved, self.n_saves = {name: tensor.clone() for name, tensor in state.items()}, self.n_saves + 1


def test_a_training_saves_on_its_way_and_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(Saver, "due", lambda _: True)
    kept, told = Kept(), []
    train_coder(
        ImagePool(images()), "csi", SMALL, Key(1), saver=Saver(kept, "a training"),
        watch=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert kept.n_saves == 4


def test_every_item_is_seen_once_an_epoch():
    pool, config = ImagePool(images(12)), SMALL
    training = begin(pool, "simclr", config, Key(3))
    for _ in range(2):
        seen = torch.cat([training._rows() for training.step in range(training.step, training.step + 3)])
        training.step += 1
        assert sorted(seen.tolist()) == list(range(12))


def test_a_pool_too_large_to_keep_is_loaded_step_by_step_to_the_same_coder(monkeypatch):
    pool = ImagePool(images())
    resident = train_coder(pool, "simclr", SMALL, Key(1)).state()
    monkeypatch.setattr("mqnet.models.contrastive.train.RESIDENT_BYTES", 0)
    assert same(train_coder(pool, "simclr", SMALL, Key(1)).state(), resident)


def test_the_pools_colours_are_its_pixels_mean_and_deviation():
    pixels = images(7, 4)
    mean, deviation = colours(Images(ImagePool(pixels), Engine.choose("cpu", "auto")))
    unit = pixels / 255.0
    np.testing.assert_allclose(mean.numpy(), unit.mean(axis=(0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(deviation.numpy(), unit.std(axis=(0, 2, 3)), rtol=1e-5)


def test_training_lowers_the_loss_and_tells_kinds_of_images_apart():
    # two kinds of picture: stripes across and stripes down, in random colours
    rng = np.random.default_rng(0)
    pixels = np.zeros((64, 3, 8, 8), dtype=np.uint8)
    for i in range(64):
        colour = rng.integers(80, 256, 3)[:, None]
        if i % 2:
            pixels[i, :, ::2, :] = colour[:, :, None]
        else:
            pixels[i, :, :, ::2] = colour[:, :, None]
    config = CoderConfig(epochs=15, batch_size=16, lr=3.0, warmup=0.1)
    coder = train_coder(ImagePool(pixels), "csi", config, Key(0))
    rows = torch.nn.functional.normalize(coder.encode(torch.from_numpy(pixels)), dim=1)
    alike = (rows @ rows.T).fill_diagonal_(-1.0).argmax(1) % 2
    assert (alike == torch.arange(64) % 2).float().mean() > 0.9


def test_a_coder_is_restored_from_its_state():
    pixels = images()
    config = SMALL.model_copy(update={"space": "projection", "rotations": 4})
    coder = train_coder(ImagePool(pixels), "csi", config, Key(1))
    back = restored(coder.state(), "csi", config, 8, torch.device("cpu"))
    rows = coder.encode(torch.from_numpy(pixels))
    assert torch.equal(back.encode(torch.from_numpy(pixels)), rows)
    assert rows.shape == (10, 4 * 8)
    # the four turns of an image hold the same four blocks, in another order
    turned = coder.encode(torch.from_numpy(np.rot90(pixels, 1, axes=(2, 3)).copy()))
    torch.testing.assert_close(turned.view(10, 4, 8), rows.view(10, 4, 8).roll(-1, dims=1), rtol=1e-4, atol=1e-5)
    with pytest.raises(StoreError, match=r"turns\.weight"):
        restored(coder.state(), "simclr", config, 8, torch.device("cpu"))


def test_the_nets_gradients_are_slopes(monkeypatch):
    monkeypatch.setattr("mqnet.models.resnet.pooled", lambda maps: maps.mean(dim=(2, 3)))  # as it is, but in double
    net = CoderNet("csi", SMALL, 8, torch.Generator().manual_seed(0)).double()
    pictures = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def loss():
        _, projected, turns = net(pictures)
        return nt_xent(projected) + torch.nn.functional.cross_entropy(turns, rotation_labels(2))

    weights = list(net.parameters())
    gradients = torch.autograd.grad(loss(), weights)
    for weight, gradient in zip(weights, gradients, strict=True):
        direction = torch.randn(weight.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        ends = []
        for move in (1e-7, -2e-7):
            with torch.no_grad():
                weight.add_(direction, alpha=move)
                ends.append(float(loss()))
        with torch.no_grad():
            weight.add_(direction, alpha=1e-7)
        assert float((gradient * direction).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-7, abs=1e-6, rel=1e-5)


def test_what_is_not_images_or_no_device_is_refused():
    with pytest.raises(PoolError, match="learns from images"):
        train_coder(ArrayPool(np.ones((4, 3), dtype=np.float32)), "csi", SMALL, Key(0))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no GPU here"):
            train_coder(ImagePool(images()), "csi", SMALL.model_copy(update={"device": "cuda"}), Key(0))


def test_a_training_that_diverges_says_what_to_do():
    with pytest.raises(ConfigError, match="lower `lr`"):
        train_coder(ImagePool(images()), "csi", SMALL.model_copy(update={"lr": 1e38, "warmup": 0.0}), Key(0))
