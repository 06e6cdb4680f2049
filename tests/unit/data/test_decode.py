"""Image files to pixels: every odd mode read right, every broken file named."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mqnet.data.decode import MAX_PIXELS, read_picture, square
from mqnet.errors import ImageError
from mqnet.rng import Key

RGB = np.random.default_rng(0).integers(0, 256, (12, 20, 3)).astype(np.uint8)


def _save(path: Path, image: Image.Image, **how: object) -> Path:
    image.save(path, **how)
    return path


def test_plain_pictures_come_as_they_are(tmp_path: Path) -> None:
    for suffix in ("png", "bmp", "tiff"):
        found = read_picture(_save(tmp_path / f"a.{suffix}", Image.fromarray(RGB)))
        assert (found.pixels == RGB).all()
        assert found.oddities == ()
    grey = read_picture(_save(tmp_path / "grey.png", Image.fromarray(RGB[:, :, 0])))
    assert (grey.pixels == RGB[:, :, :1]).all()


@pytest.mark.parametrize("kind", ["png", "tiff"])
def test_sixteen_bits_are_scaled_not_cut(tmp_path: Path, kind: str) -> None:
    wide = np.asarray([[0, 257, 1000, 32_768, 65_535]], dtype=np.uint16)
    found = read_picture(_save(tmp_path / f"w.{kind}", Image.fromarray(wide)))
    assert found.pixels[0, :, 0].tolist() == [0, 1, 4, 128, 255]
    assert found.oddities == ("16-bit",)


def test_floats_between_nought_and_one_are_scaled_and_others_refused(tmp_path: Path) -> None:
    found = read_picture(_save(tmp_path / "f.tiff", Image.fromarray(np.asarray([[0.0, 0.5, 1.0]], dtype=np.float32))))
    assert found.pixels[0, :, 0].tolist() == [0, 128, 255]
    with pytest.raises(ImageError, match=r"'f\.tiff' holds values from -1 to 1"):
        read_picture(_save(tmp_path / "f.tiff", Image.fromarray(np.asarray([[-1.0, 1.0]], dtype=np.float32))), "f.tiff")


def test_every_exif_rotation_is_applied(tmp_path: Path) -> None:
    turned = {
        1: RGB, 2: RGB[:, ::-1], 3: RGB[::-1, ::-1], 4: RGB[::-1], 5: RGB.transpose(1, 0, 2),
        6: np.rot90(RGB, -1), 7: RGB[::-1, ::-1].transpose(1, 0, 2), 8: np.rot90(RGB, 1),
    }  # fmt: skip
    for orientation, expected in turned.items():
        image = Image.fromarray(RGB)
        exif = image.getexif()
        exif[0x0112] = orientation
        found = read_picture(_save(tmp_path / "r.png", image, exif=exif))
        assert (found.pixels == expected).all(), orientation
        assert found.oddities == (() if orientation == 1 else ("EXIF-rotated",))


def test_palette_cmyk_and_transparency(tmp_path: Path) -> None:
    image = Image.fromarray(RGB)
    palette = image.quantize(256)
    found = read_picture(_save(tmp_path / "p.png", palette))
    assert (found.pixels == np.asarray(palette.convert("RGB"))).all()
    assert found.oddities == ("palette",)
    solid = Image.new("RGB", (8, 8), (200, 30, 60))
    cmyk = read_picture(_save(tmp_path / "c.jpg", solid.convert("CMYK"), quality=100))
    assert cmyk.oddities == ("CMYK",)
    assert np.abs(cmyk.pixels.astype(int) - [200, 30, 60]).max() <= 3
    clear = np.dstack([RGB, np.where(np.arange(20) < 10, 255, 0)[None].repeat(12, 0)]).astype(np.uint8)
    through = read_picture(_save(tmp_path / "t.png", Image.fromarray(clear)))
    assert (through.pixels[:, :10] == RGB[:, :10]).all()
    assert (through.pixels[:, 10:] == 255).all()
    assert through.oddities == ("transparent",)
    keyed = read_picture(_save(tmp_path / "k.png", Image.fromarray(np.zeros((2, 2), np.uint8), "L"), transparency=0))
    assert (keyed.pixels == 255).all()


def test_of_an_animation_the_first_frame_counts(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue")]
    found = read_picture(_save(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:]))
    assert "several frames" in found.oddities
    assert found.pixels[3, 3].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["jpg", "png", "webp", "bmp", "gif", "tiff"])
def test_no_cut_file_passes_for_a_whole_one(tmp_path: Path, kind: str) -> None:
    whole = _save(tmp_path / f"whole.{kind}", Image.fromarray(RGB)).read_bytes()
    for share in (0.05, 0.3, 0.6, 0.9):
        path = tmp_path / f"cut.{kind}"
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ImageError, match=rf"'cut\.{kind}' is (truncated|damaged|not an image)"):
            read_picture(path, f"cut.{kind}")


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    for name, content, message, fault in (
        ("empty.jpg", b"", r"'empty\.jpg' is empty \(0 bytes\)", "empty file"),
        ("text.png", b"hello, I am a text", r"'text\.png' is not an image", "not an image"),
        ("page.jpg", b"<html></html>" * 50, r"'page\.jpg' is not an image", "not an image"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ImageError, match=message) as caught:
            read_picture(tmp_path / name, name)
        assert caught.value.fault == fault
    with pytest.raises(ImageError, match=r"'gone\.png' cannot be read: No such file"):
        read_picture(tmp_path / "gone.png", "gone.png")


def test_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    side = 60_000
    assert side * side > MAX_PIXELS
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10_000))
    (tmp_path / "bomb.png").write_bytes(content)
    with pytest.raises(ImageError, match=r"'bomb\.png' is too large to unpack"):
        read_picture(tmp_path / "bomb.png", "bomb.png")


def test_a_square_is_the_middle_and_a_crop_is_random_but_fixed() -> None:
    middle = square(RGB, 12)
    assert (middle == RGB[:, 4:16].transpose(2, 0, 1)).all()
    flat = square(np.full((30, 90, 3), 77, dtype=np.uint8), 16)
    assert flat.shape == (3, 16, 16)
    assert (flat == 77).all()
    big = np.arange(64 * 64 * 3, dtype=np.uint32).reshape(64, 64, 3).astype(np.uint8)
    crops = [square(big, 32, Key(0).child(i)) for i in range(6)]
    assert (crops[0] == square(big, 32, Key(0).child(0))).all()
    assert len({crop.tobytes() for crop in crops}) == 6
    # a picture that has the size already is neither cut nor blown up
    assert (square(RGB[:, :12], 12, Key(0)) == RGB[:, :12].transpose(2, 0, 1)).all()


def test_a_reduced_size_is_no_shorter_than_asked_for(tmp_path: Path) -> None:
    large = Image.fromarray(np.kron(RGB, np.ones((40, 40, 1), dtype=np.uint8)))
    found = read_picture(_save(tmp_path / "l.jpg", large), at_least=60).pixels
    assert 60 <= min(found.shape[:2]) < 480
