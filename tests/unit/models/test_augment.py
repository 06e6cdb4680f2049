"""Augmentations against PIL and numpy on fixed parameters, and the laws of their draws."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.models.augment import (
    Augmentation,
    Chain,
    ColourJitter,
    Flip,
    FlipCrop,
    Greyscale,
    ResizedCrop,
    Rotation,
    all_rotations,
    augmented,
    below,
    colour_change,
    flip_crop,
    normalised,
    resized_crop,
    rotated,
    to_unit,
)

EVERY: list[Augmentation] = [FlipCrop(), Flip(), ResizedCrop(), ColourJitter(), Greyscale(), Rotation()]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(n: int, size: int = 32) -> Tensor:
    return torch.randint(256, (n, 3, size, size), dtype=torch.uint8, generator=seeded())


def smooth(n: int, size: int = 32, low: int = 70, high: int = 180) -> Tensor:
    """Pictures that change slowly and stay clear of black and white: no change of colour is cut."""
    coarse = torch.rand(n, 3, 5, 5, generator=seeded(1)) * (high - low) + low
    return torch.nn.functional.interpolate(coarse, (size, size), mode="bilinear").round().byte()


def to_pil(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).numpy())


def from_pil(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def bytes_of(unit: Tensor) -> Tensor:
    return (unit * 255.0).round()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_flip_and_padded_crop_are_pils(dtype: torch.dtype) -> None:
    images = noise(10, 9)
    flip = torch.arange(10) % 2 == 0
    left, top = torch.tensor([0, 8, 4, 3, 1, 7, 8, 0, 5, 2]), torch.tensor([8, 0, 4, 1, 2, 8, 8, 0, 6, 5])
    out = flip_crop(images.to(dtype), flip, left, top, padding=4)
    assert out.dtype == dtype
    for i in range(10):
        pil = ImageOps.mirror(to_pil(images[i])) if flip[i] else to_pil(images[i])
        x, y = int(left[i]), int(top[i])
        expected = from_pil(ImageOps.expand(pil, 4, fill=0).crop((x, y, x + 9, y + 9)))
        assert torch.equal(out[i].byte(), expected)


def test_resized_crop_is_pils_bilinear_extent() -> None:
    images = smooth(5)
    boxes = torch.tensor([[0, 0, 32, 32], [3.5, 7.25, 20, 11], [16, 0, 16, 16], [0, 20, 30, 12], [10.1, 9.7, 9.3, 9.3]])
    out = bytes_of(resized_crop(to_unit(images), boxes))
    for i, (x, y, w, h) in enumerate(boxes.tolist()):
        box = (x, y, x + w, y + h)
        expected = to_pil(images[i]).transform((32, 32), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
        assert (out[i] - from_pil(expected)).abs().max() <= 1.0
    assert torch.equal(out[0].byte(), images[0])


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.3])
@pytest.mark.parametrize("kind", ["Brightness", "Contrast", "Color"])
def test_colour_factors_are_pils_enhancers(kind: str, factor: float) -> None:
    images, one = smooth(4), torch.ones(4)
    changes = {"Brightness": (factor, 1.0, 1.0), "Contrast": (1.0, factor, 1.0), "Color": (1.0, 1.0, factor)}
    b, c, s = (one * value for value in changes[kind])
    out = bytes_of(colour_change(to_unit(images), b, c, s, torch.zeros(4)))
    for i in range(4):
        expected = from_pil(getattr(ImageEnhance, kind)(to_pil(images[i])).enhance(factor))
        assert (out[i] - expected).abs().max() <= 1.0  # PIL rounds on the way


def test_colour_changes_together_are_pils_one_after_the_other() -> None:
    images = smooth(3, low=90, high=150)
    b, c, s = torch.tensor([0.8, 1.1, 1.0]), torch.tensor([1.2, 0.7, 1.3]), torch.tensor([0.5, 1.4, 0.0])
    out = bytes_of(colour_change(to_unit(images), b, c, s, torch.zeros(3)))
    for i in range(3):
        pil = to_pil(images[i])
        for kind, factor in (("Brightness", b), ("Contrast", c), ("Color", s)):
            pil = getattr(ImageEnhance, kind)(pil).enhance(float(factor[i]))
        assert (out[i] - from_pil(pil)).abs().max() <= 3.0  # three roundings


def slow_hue(image: np.ndarray, turns: float) -> np.ndarray:
    matrix = np.array([[0.299, 0.587, 0.114], [0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]])
    angle, out = 2 * np.pi * turns, np.empty_like(image)
    for y in range(image.shape[1]):
        for x in range(image.shape[2]):
            luma, i, q = matrix @ image[:, y, x]
            turned = [luma, np.cos(angle) * i - np.sin(angle) * q, np.sin(angle) * i + np.cos(angle) * q]
            out[:, y, x] = np.linalg.solve(matrix, turned)
    return out.clip(0.0, 1.0)


def test_hue_turns_the_colour_plane_around_the_luma() -> None:
    images, one = to_unit(smooth(3, 8)), torch.ones(3)
    turns = torch.tensor([0.1, -0.25, 0.5])
    out = colour_change(images, one, one, one, turns)
    for i in range(3):
        expected = slow_hue(images[i].double().numpy(), float(turns[i]))
        np.testing.assert_allclose(out[i], expected, atol=1e-5)


def test_colours_are_cut_once_at_the_end() -> None:
    white = torch.ones(1, 3, 4, 4)
    twice, half, one = torch.tensor([2.0]), torch.tensor([0.5]), torch.ones(1)
    assert colour_change(white, twice, one, one, torch.zeros(1)).max() == 1.0
    # cut in between, 1.4 would be 1.0 and the mean 0.6: 0.8 and 0.4 would come out
    split = torch.cat([0.7 * white, 0.1 * white], dim=3)  # 1.4 and 0.2 around 0.8, then 1.1 and 0.5
    out = colour_change(split, twice, half, one, torch.zeros(1))
    torch.testing.assert_close(out[0, 0, 0, [0, -1]], torch.tensor([1.0, 0.5]))


def test_greyscale_is_pils_luma() -> None:
    images = noise(6, 8)
    out = bytes_of(Greyscale(p=1.0)(to_unit(images), torch.rand(6, 1)))
    for i in range(6):
        expected = torch.from_numpy(np.array(to_pil(images[i]).convert("L")))
        assert (out[i] - expected).abs().max() <= 1.0
    assert torch.equal(Greyscale(p=0.0)(to_unit(images), torch.rand(6, 1)), to_unit(images))


def test_rotations_are_numpys() -> None:
    images, quarters = noise(8, 6), torch.arange(8) % 4
    out = rotated(images, quarters)
    for i in range(8):
        assert np.array_equal(out[i], np.rot90(images[i].numpy(), int(quarters[i]), axes=(1, 2)))
    blocks = all_rotations(images).view(4, 8, 3, 6, 6)
    for k in range(4):
        assert torch.equal(blocks[k], rotated(images, torch.full((8,), k)))


def test_normalised_is_the_formula() -> None:
    mean, deviation = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.25, 0.5])
    images = noise(2, 4)
    out = normalised(to_unit(images), mean, deviation)
    expected = (images.numpy() / 255.0 - mean.numpy()[:, None, None]) / deviation.numpy()[:, None, None]
    np.testing.assert_allclose(out, expected, atol=1e-6)


@pytest.mark.parametrize("change", EVERY, ids=lambda change: type(change).__name__)
def test_an_image_depends_on_its_own_row_of_draws_alone(change: Augmentation) -> None:
    images, draws = to_unit(noise(12, 16)), torch.rand(12, change.n_draws, generator=seeded(4))
    whole, before = change(images, draws), images.clone()
    assert whole.shape == images.shape
    assert whole.dtype == images.dtype
    assert whole.min() >= 0.0
    assert whole.max() <= 1.0 + 1e-6
    for i in range(0, 12, 5):
        torch.testing.assert_close(change(images[i : i + 1], draws[i : i + 1])[0], whole[i], rtol=0, atol=1e-6)
    assert torch.equal(images, before)


@pytest.mark.parametrize("change", EVERY, ids=lambda change: type(change).__name__)
def test_same_generator_same_images_and_the_rows_differ(change: Augmentation) -> None:
    same = to_unit(noise(1, 16)).expand(64, 3, 16, 16)
    first, second = (augmented(change, same, seeded(5)) for _ in range(2))
    assert torch.equal(first, second)
    assert len(first.flatten(1).unique(dim=0)) > 1


def test_a_chain_deals_out_the_draws_in_order() -> None:
    images = to_unit(noise(5, 16))
    chain = Chain([ResizedCrop(), Flip(), ColourJitter(), Greyscale()])
    draws = torch.rand(5, chain.n_draws, generator=seeded(6))
    slow = ResizedCrop()(images, draws[:, :4])
    slow = Greyscale()(ColourJitter()(Flip()(slow, draws[:, 4:5]), draws[:, 5:10]), draws[:, 10:])
    assert torch.equal(chain(images, draws), slow)


def test_parameters_are_spread_as_they_should_be() -> None:
    # a picture that says where it was cut: its value is the column
    columns = torch.arange(32.0).expand(3, 32, 32)[None].expand(4000, 3, 32, 32) / 255.0
    draws = torch.rand(4000, 4, generator=seeded(7))
    out = ResizedCrop(scale=(0.25, 0.25), ratio=(1.0, 1.0))(columns, draws)[:, 0, 0] * 255.0
    assert (out[:, -1] - out[:, 0]).mean() == pytest.approx(15.5, abs=0.3)  # half the side
    first = out[:, 0]
    assert (first.min() < 0.6, first.max() > 15.4, abs(float(first.mean()) - 7.76) < 0.3) == (True, True, True)
    flips = torch.rand(4000, 3, generator=seeded(8))
    mirrored = FlipCrop(padding=0)(columns, flips)[:, 0, 0, 0] > 0.0
    assert mirrored.float().mean() == pytest.approx(0.5, abs=0.03)
    assert below(torch.tensor([0.0, 0.5, 0.99999997]), 9).tolist() == [0, 4, 8]
    counts = below(torch.rand(90_000, generator=seeded(9)), 9).bincount()
    assert counts.min() > 9_500
    assert counts.max() < 10_500


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ResizedCrop(scale=(0.0, 1.0)), "scale"),
        (lambda: ResizedCrop(scale=(0.5, 1.5)), "scale"),
        (lambda: ResizedCrop(ratio=(2.0, 1.0)), "ratio"),
        (lambda: ColourJitter(hue=0.6), "hue"),
        (lambda: ColourJitter(p=1.5), "p is"),
        (lambda: Greyscale(p=-0.1), "p is"),
    ],
)
def test_bad_options_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()  # pyright: ignore[reportCallIssue]


def test_no_python_per_image() -> None:
    """512 images take far less than 512 times one image, on a fast machine and on a slow one."""
    images, change = noise(512), FlipCrop()
    draws = torch.rand(512, change.n_draws)
    seconds = {}
    for n in (1, 512):
        seconds[n] = min(_timed(change, images[:n], draws[:n]) for _ in range(20))
    assert seconds[512] < 100 * seconds[1]


def _timed(change: Augmentation, images: Tensor, draws: Tensor) -> float:
    began = time.perf_counter()
    change(images, draws)
    return time.perf_counter() - began
