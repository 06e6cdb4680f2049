"""Augmentation of whole batches on their own device: a function of images and of uniform numbers, a row per image.

No augmentation draws anything itself. It says how many numbers in [0, 1) it wants per image (`n_draws`), and what they
make of the image is fixed: the numbers of many steps can be drawn at once, on the CPU for every device, and a training
that is continued draws what an undisturbed one would have drawn. Images are [n, 3, S, S]: uint8, or floats in [0, 1]
for everything that mixes colours or resamples (normalised images would be clipped wrongly).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from mqnet.errors import ConfigError

GREY = (0.299, 0.587, 0.114)
"""Share of red, green and blue in the luma (ITU-R 601), as PIL reckons it."""

TO_YIQ = (*GREY, 0.595716, -0.274453, -0.321263, 0.211456, -0.522591, 0.311135)
FROM_YIQ = tuple(torch.linalg.inv(torch.tensor(TO_YIQ, dtype=torch.float64).view(3, 3)).flatten().tolist())


@lru_cache(maxsize=64)
def _constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    # sent to a GPU once: every other time the processor would wait until all that was asked of it before is done
    return torch.tensor(values, dtype=dtype, device=device)


def _like(images: Tensor, values: tuple[float, ...]) -> Tensor:
    return _constant(values, images.dtype, images.device)


class Augmentation(Protocol):
    """A random change of images."""

    @property
    def n_draws(self) -> int:
        """How many uniform numbers it takes per image."""
        ...

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """New images of the same shape and type from images [n, 3, S, S] and numbers [n, n_draws] in [0, 1)."""
        ...


def augmented(change: Augmentation, images: Tensor, generator: torch.Generator) -> Tensor:
    """The images changed at random, by numbers from a generator on the CPU or on the images' device."""
    draws = torch.rand(len(images), change.n_draws, generator=generator, device=generator.device)
    return change(images, draws.to(images.device, non_blocking=True))


@dataclass(frozen=True)
class Chain:
    """One augmentation after the other."""

    parts: Sequence[Augmentation]

    @property
    def n_draws(self) -> int:
        """As many as its parts take."""
        return sum(part.n_draws for part in self.parts)

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """The parts in their order, each with its own columns of the numbers."""
        for part, own in zip(self.parts, draws.split([part.n_draws for part in self.parts], dim=1), strict=True):
            images = part(images, own)
        return images


@dataclass(frozen=True)
class FlipCrop:
    """Mirrored with probability 1/2, and moved by up to `padding` pixels each way; what comes in is black."""

    padding: int = 4
    n_draws = 3

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Any type of images."""
        span = 2 * self.padding + 1
        return flip_crop(
            images, draws[:, 0] < 0.5, below(draws[:, 1], span), below(draws[:, 2], span), padding=self.padding
        )


@dataclass(frozen=True)
class Flip:
    """Mirrored with probability 1/2."""

    n_draws = 1

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Any type of images."""
        return flip_crop(images, draws[:, 0] < 0.5, None, None, padding=0)


@dataclass(frozen=True)
class ResizedCrop:
    """A rectangle of a random share of the area and a random aspect, resampled to the whole image; floats only.

    The share is uniform in `scale`, the aspect log-uniform in `ratio`; a side that would be longer than the image is
    cut to it (drawing again, as is usual, would make the number of draws random).
    """

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    n_draws = 4

    def __post_init__(self) -> None:
        for name, (low, high) in (("scale", self.scale), ("ratio", self.ratio)):
            if not 0.0 < low <= high or (name == "scale" and high > 1.0):
                raise ConfigError(f"{name} is ({low:g}, {high:g}); give a rising pair of shares above 0.")

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Bilinear, without smoothing first: crops are enlarged, not shrunk."""
        side = images.shape[-1]
        area = self.scale[0] + (self.scale[1] - self.scale[0]) * draws[:, 0]
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        aspect = torch.exp(low + (high - low) * draws[:, 1])
        width = (area * aspect).sqrt().clamp(max=1.0) * side
        height = (area / aspect).sqrt().clamp(max=1.0) * side
        left, top = (side - width) * draws[:, 2], (side - height) * draws[:, 3]
        return resized_crop(images, torch.stack([left, top, width, height], dim=1))


@dataclass(frozen=True)
class ColourJitter:
    """Brightness, contrast, saturation and hue changed together with probability `p`; floats in [0, 1] only.

    The first three are factors uniform in [1 - x, 1 + x] (from 0), hue is an angle uniform in [-x, x] turns. The order
    is fixed (brightness, contrast, saturation, hue) and colours are cut to [0, 1] once, at the end: so the whole change
    is one 3x3 matrix and one shift per image.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    p: float = 0.8
    n_draws = 5

    def __post_init__(self) -> None:
        if min(self.brightness, self.contrast, self.saturation, self.hue) < 0.0 or self.hue > 0.5:
            raise ConfigError("brightness, contrast, saturation and hue are 0 or more, and hue at most 0.5.")
        _check_probability(self.p)

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Colours in [0, 1] whatever the change."""
        widths = _like(draws, (self.brightness, self.contrast, self.saturation))
        off = draws[:, 4] >= self.p
        factors = (1.0 + widths * (2.0 * draws[:, :3] - 1.0)).clamp(min=0.0).masked_fill(off[:, None], 1.0)
        turns = (self.hue * (2.0 * draws[:, 3] - 1.0)).masked_fill(off, 0.0)
        return colour_change(images, factors[:, 0], factors[:, 1], factors[:, 2], turns)


@dataclass(frozen=True)
class Greyscale:
    """Without colour with probability `p`; floats only."""

    p: float = 0.2
    n_draws = 1

    def __post_init__(self) -> None:
        _check_probability(self.p)

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """The luma in all three channels."""
        grey = _like(images, GREY)
        luma = torch.einsum("nchw,c->nhw", images, grey)[:, None].expand_as(images)
        return torch.where(draws[:, :1, None, None] < self.p, luma, images)


@dataclass(frozen=True)
class Rotation:
    """Turned by 0, 90, 180 or 270 degrees, each as likely."""

    n_draws = 1

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """Any type of images."""
        return rotated(images, below(draws[:, 0], 4))


def flip_crop(images: Tensor, flip: Tensor, left: Tensor | None, top: Tensor | None, *, padding: int) -> Tensor:
    """Images mirrored where `flip` [n], padded with zeros and cut at (left, top) [n] in 0..2 padding; a plain copy."""
    n, channels, height, width = images.shape
    rows = torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device)
    # the mirrored image is cut at `left`: column x shows the source's column x + left - padding, counted from the right
    x = columns + (0 if left is None else left[:, None] - padding)
    y = rows + (0 if top is None else top[:, None] - padding)
    x = torch.where(flip[:, None], width - 1 - x, x)
    y = y.expand(n, height)
    pixel = y.clamp(0, height - 1)[:, :, None] * width + x.clamp(0, width - 1)[:, None, :]
    inside = (y >= 0) & (y < height), (x >= 0) & (x < width)
    flat = pixel.view(n, 1, height * width).expand(n, channels, height * width)
    out = images.reshape(n, channels, height * width).gather(2, flat).view(images.shape)
    return out if padding == 0 else out * (inside[0][:, :, None] & inside[1][:, None, :])[:, None]


def resized_crop(images: Tensor, boxes: Tensor) -> Tensor:
    """The rectangles (left, top, width, height) [n, 4], in pixels, resampled bilinearly to the images' size.

    Pixels are squares: a box of the whole image gives the image. Beyond the border the edge goes on.
    """
    side = _like(images, (images.shape[3], images.shape[2]))
    size = boxes[:, 2:] / side
    centre = (2.0 * boxes[:, :2] + boxes[:, 2:]) / side - 1.0
    theta = torch.zeros(len(images), 2, 3, dtype=images.dtype, device=images.device)
    theta[:, 0, 0], theta[:, 1, 1] = size[:, 0], size[:, 1]
    theta[:, :, 2] = centre
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def colour_change(images: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, turns: Tensor) -> Tensor:
    """Images in [0, 1] after the four changes [n] each, cut to [0, 1] at the end.

    `x -> b x`, then towards the image's mean luma, then towards each pixel's luma, as PIL's enhancers do; hue turns the
    colour plane around the luma by `turns` (a rotation in YIQ, which keeps the luma; one in HSV does not).
    """
    n, grey = len(images), _like(images, GREY)
    eye = torch.eye(3, dtype=images.dtype, device=images.device)
    to_luma = grey.expand(3, 3)  # every row the weights: each channel becomes the luma
    s, c = saturation[:, None, None], (contrast * brightness)[:, None, None]
    mixing = _hue_matrix(turns, images) @ (s * eye + (1.0 - s) * to_luma)
    # the mean luma after the change of brightness; a grey is a fixed point of saturation and hue
    luma = torch.einsum("nchw,c->n", images, grey) / (images.shape[2] * images.shape[3]) * brightness
    shift = ((1.0 - contrast) * luma)[:, None, None].expand(n, 3, 1)
    changed = torch.baddbmm(shift, mixing * c, images.reshape(n, 3, -1))
    return changed.clamp_(0.0, 1.0).view(images.shape)


def _hue_matrix(turns: Tensor, like: Tensor) -> Tensor:
    """Rotation [n, 3, 3] of RGB around the luma by so many turns."""
    to_yiq, from_yiq = (_like(like, matrix).view(3, 3) for matrix in (TO_YIQ, FROM_YIQ))
    angle = 2.0 * math.pi * turns
    cosine, sine, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    turn = torch.stack([one, zero, zero, zero, cosine, -sine, zero, sine, cosine], dim=1).view(-1, 3, 3)
    return from_yiq @ turn.to(like.dtype) @ to_yiq


def rotated(images: Tensor, quarters: Tensor) -> Tensor:
    """Square images turned counter-clockwise by `quarters` [n] (0 to 3) times 90 degrees."""
    turns = torch.stack([images.rot90(k, (2, 3)) for k in range(4)])
    return turns[quarters, torch.arange(len(images), device=images.device)]


def all_rotations(images: Tensor) -> Tensor:
    """The images [4 n, 3, S, S] turned by 0, by 90, by 180 and by 270 degrees, one block of n after the other."""
    return torch.cat([images.rot90(k, (2, 3)) for k in range(4)])


def below(draws: Tensor, n: int) -> Tensor:
    """Whole numbers in 0..n-1 from uniform numbers; float32 can round u n up to n."""
    return (draws * n).long().clamp_(max=n - 1)


def to_unit(images: Tensor) -> Tensor:
    """uint8 images as float32 in [0, 1]."""
    return images.float().div_(255.0)


def normalised(images: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """`(x - mean) / deviation` per channel [3], of images in [0, 1]; float32."""
    return (images - mean.view(1, 3, 1, 1)).div_(deviation.view(1, 3, 1, 1))


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ConfigError(f"p is {p}; a probability lies in [0, 1].")
