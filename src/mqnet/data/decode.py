"""Image files to pixels: turned upright, in colour, eight bits; whatever cannot be read is an error that names it.

Nothing here imports torch.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from mqnet.errors import ImageError
from mqnet.rng import Key

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
MAX_PIXELS = 178_956_970
"""Larger pictures are refused by their header, before a pixel is unpacked (where Pillow, too, sees a bomb)."""
CROP = 0.875
"""Share of the shorter side that a random crop leaves: 224 of 256."""
BACKGROUND = (255, 255, 255)
"""What shows through transparent pixels."""

_ROTATED = frozenset(range(2, 9))
_ORIENTATION = 0x0112
_header_lock = threading.Lock()  # `catch_warnings` swaps a global list of filters: one header at a time


@dataclass(frozen=True)
class Picture:
    """A decoded picture uint8 [H, W, 3], and what was unusual about its file: '16-bit', 'CMYK', 'palette', …"""

    pixels: NDArray[np.uint8]
    oddities: tuple[str, ...]


def read_picture(path: Path, name: str = "", *, at_least: int | None = None) -> Picture:
    """The picture of a file, called `name` in errors.

    EXIF rotation is applied; transparency is laid over white; 16-bit grey is scaled, not cut; of an animation the first
    frame counts. `at_least` lets JPEGs be unpacked at a reduced size whose sides are no shorter than that, far faster.
    Raises `ImageError` for a file that is empty, truncated, no image, or too large to unpack.
    """
    name = name or str(path)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ImageError(f"'{name}' cannot be read: {error.strerror or error}.", "unreadable") from error
    if size == 0:
        raise ImageError(f"'{name}' is empty (0 bytes). Copy it again, or remove it.", "empty file")
    try:
        with _open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ImageError(_too_large(name, f"{image.width} x {image.height} pixels"), "too large")
            if at_least is not None and image.mode in ("RGB", "L"):
                image.draft(image.mode, (at_least, at_least))
            image.load()
            return _upright(image, name)
    except ImageError:
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(_too_large(name, str(error)), "too large") from error
    except UnidentifiedImageError as error:
        raise ImageError(
            f"'{name}' is not an image, whatever its name says. Remove it or replace it.", "not an image"
        ) from error
    except PermissionError as error:
        raise ImageError(f"'{name}' cannot be read: permission denied.", "unreadable") from error
    # Pillow's plug-ins raise what their parsers stumble over
    except Exception as error:
        cut = isinstance(error, EOFError) or "trunc" in str(error).lower()
        fault = "truncated" if cut else "damaged"
        raise ImageError(f"'{name}' is {fault} ({error}). Copy it again, or remove it.", fault) from error


def _open(path: Path) -> Image.Image:
    with _header_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks on odd metadata: what matters shows in the pixels
        return Image.open(path, formats=FORMATS)


def _too_large(name: str, what: str) -> str:
    return f"'{name}' is too large to unpack ({what}; at most {MAX_PIXELS:,} pixels). Scale it down, or remove it."


def _upright(image: Image.Image, name: str) -> Picture:
    odd: list[str] = []
    if getattr(image, "n_frames", 1) > 1 and image.format != "MPO":
        odd.append("several frames")
    rotated = _is_rotated(image)
    picture = _eight_bit_colour(image, name, odd)
    if rotated:
        odd.append("EXIF-rotated")
        picture = ImageOps.exif_transpose(_with_orientation(picture, image))
    return Picture(np.asarray(picture.convert("RGB"), dtype=np.uint8), tuple(odd))


def _is_rotated(image: Image.Image) -> bool:
    try:
        return image.getexif().get(_ORIENTATION, 1) in _ROTATED
    except Exception:  # broken metadata turn nothing, and take nothing from the pixels
        return False


def _with_orientation(picture: Image.Image, like: Image.Image) -> Image.Image:
    exif = picture.getexif()
    exif[_ORIENTATION] = like.getexif()[_ORIENTATION]
    return picture


def _eight_bit_colour(image: Image.Image, name: str, odd: list[str]) -> Image.Image:
    """The image as 8-bit RGB; what its mode was is noted in `odd`."""
    mode = image.mode
    if mode == "RGB":
        return image
    if mode.startswith(("I", "F")):
        odd.append("16-bit" if mode.startswith("I;16") else "32-bit")
        return Image.fromarray(_scaled(np.asarray(image), name)).convert("RGB")
    if mode in ("P", "PA"):
        odd.append("palette")
        image = image.convert("RGBA") if "transparency" in image.info or mode == "PA" else image.convert("RGB")
    elif mode in ("CMYK", "YCbCr", "LAB", "HSV"):
        odd.append(mode)
    elif mode == "1":
        odd.append("1-bit")
    if image.mode in ("RGBA", "LA", "La", "RGBa") or "transparency" in image.info:
        odd.append("transparent")
        over = image.convert("RGBA")
        flat = Image.new("RGBA", over.size, (*BACKGROUND, 255))
        flat.alpha_composite(over)
        return flat.convert("RGB")
    return image.convert("RGB")


def _scaled(values: NDArray[np.generic], name: str) -> NDArray[np.uint8]:
    """Grey values of 16 or 32 bits, or floats in [0, 1], on the scale of 0 to 255; Pillow's conversion cuts them."""
    wide = values.astype(np.float64)
    if not np.isfinite(wide).all():
        raise ImageError(f"'{name}' holds values that are not finite numbers. Remove it or replace it.", "damaged")
    low, high = float(wide.min()), float(wide.max())
    floats = values.dtype.kind == "f"
    top = 1.0 if floats and high <= 1.0 else 255.0 if floats and high <= 255.0 else 65_535.0
    if low < 0 or high > top:
        raise ImageError(
            f"'{name}' holds values from {low:g} to {high:g}: which one is white is not known. Save it with 8 bits.",
            "unknown range",
        )
    return np.rint(wide * (255.0 / top)).astype(np.uint8)


def square(pixels: NDArray[np.uint8], size: int, crop: Key | None = None) -> NDArray[np.uint8]:
    """A picture [H, W, 3] as a square [3, size, size].

    The middle of the longer side, scaled; with `crop` a square at a random place, its side 0.875 of the shorter side
    (but no less than `size`, so that a crop is not blown up), as junk from elsewhere is prepared (METHOD 5).
    """
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    if crop is not None:
        side = min(side, max(size, round(CROP * side)))
        draw = crop.numpy()
        top, left = int(draw.integers(height - side + 1)), int(draw.integers(width - side + 1))
    cut = pixels[top : top + side, left : left + side]
    if side != size:
        # the filter is widened with the scale: a picture made small is an average, not a sample
        cut = np.asarray(Image.fromarray(cut).resize((size, size), Image.Resampling.BILINEAR))
    return np.ascontiguousarray(cut.transpose(2, 0, 1))
