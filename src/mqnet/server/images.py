"""Images of items: found under the project's root and nowhere else, small ones made on the way."""

from __future__ import annotations

import io
import threading
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

from mqnet.errors import InputError

SERVED = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
"""What browsers show as it is; other formats are converted."""
KEPT_BYTES = 48 * 1024 * 1024
MOST_PIXELS = 120_000_000


class MissingImageError(InputError):
    """The item has no image that can be shown."""


@dataclass(frozen=True)
class Picture:
    """An image as it is sent: either a file as it lies, or bytes; `etag` changes when the file does."""

    media_type: str
    etag: str
    path: Path | None = None
    content: bytes = b""


class Images:
    """The images of a project, by their path under its root."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._kept: OrderedDict[str, Picture] = OrderedDict()
        self._n_bytes = 0
        self._lock = threading.Lock()

    def find(self, ref: str) -> Path:
        """The file of an item; links that lead out of the root are not followed."""
        path, inside = self._root, False
        try:
            path = (self._root / ref).resolve()
            inside = path.is_relative_to(self._root) and path.is_file()
        except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL in the name
            pass
        if not inside:
            raise MissingImageError("the image of this item is not where it was. Is the folder of images in its place?")
        return path

    def picture(self, ref: str, size: int | None) -> Picture:
        """The image of an item, upright; with a size, no side longer than the next power of two."""
        path = self.find(ref)
        size = None if size is None else 1 << (size - 1).bit_length()  # a few sizes: each is made and kept once
        about = path.stat()
        etag = f'"{about.st_mtime_ns:x}-{about.st_size:x}-{size or 0}"'
        key = f"{path}\n{etag}"
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            # too many pixels are an error of ours below: a picture of a picture bomb is never decoded
            with warnings.catch_warnings(action="ignore"), Image.open(path) as image:
                picture = self._make(path, image, size, etag)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise MissingImageError("the image of this item cannot be read.") from error
        if picture.content:
            self._keep(key, picture)
        return picture

    @staticmethod
    def _make(path: Path, image: Image.Image, size: int | None, etag: str) -> Picture:
        kind = image.format or ""
        if size is None and kind in SERVED:
            return Picture(SERVED[kind], etag, path)
        if image.width * image.height > MOST_PIXELS:
            raise MissingImageError("the image of this item has too many pixels to be shown.")
        if size is not None:
            image.draft("RGB", (2 * size, 2 * size))
        upright = ImageOps.exif_transpose(image)
        if size is not None:
            upright.thumbnail((size, size), Image.Resampling.LANCZOS)
        out = io.BytesIO()
        if upright.mode in ("RGB", "L", "CMYK", "YCbCr"):
            upright.convert("RGB").save(out, "JPEG", quality=85)
            return Picture("image/jpeg", etag, content=out.getvalue())
        if upright.mode.startswith(("I", "F")):  # more than eight bits: stretched to what a screen shows
            low, high = upright.getextrema()
            scale = 255.0 / max(float(high) - float(low), 1e-9)  # pyright: ignore[reportArgumentType]  # one band
            upright = upright.convert("F").point(lambda value: (value - float(low)) * scale).convert("L")  # pyright: ignore
        elif upright.mode == "P" or upright.mode not in ("RGBA", "LA", "1"):
            upright = upright.convert("RGBA")
        upright.save(out, "PNG")
        return Picture("image/png", etag, content=out.getvalue())

    def _keep(self, key: str, picture: Picture) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = picture
                self._n_bytes += len(picture.content)
            while self._n_bytes > KEPT_BYTES:
                self._n_bytes -= len(self._kept.popitem(last=False)[1].content)
