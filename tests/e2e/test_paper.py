"""`mqnet paper` and `mqnet figures` on made-up features: cost first, the paper beside what was measured, resumed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

TINY = ("--seeds", "1", "--rounds", "2", "--pool-size", "150", "--budget", "10", "--jobs", "1")


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as frozen CIFAR-10 features come, of ten clusters and one of junk."""
    folder = tmp_path_factory.mktemp("features")
    random = np.random.default_rng(0)
    centres = 3 * random.normal(size=(11, 8))
    for name, n in (("cifar10_train", 600), ("cifar10_test", 100)):
        labels = np.arange(n) % 10
        vectors = centres[labels] + random.normal(size=(n, 8))
        np.save(folder / f"{name}.npy", vectors.astype(np.float16))
        np.save(folder / f"{name}_labels.npy", labels.astype(np.int64))
    np.save(folder / "places_ood.npy", (centres[10] + random.normal(size=(400, 8))).astype(np.float16))
    return folder


@pytest.fixture(scope="module")
def pressed(mqnet, features: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which `auroc` was made, and what that printed."""
    folder = tmp_path_factory.mktemp("pressed")
    ended = mqnet("paper", "auroc", "--data", features, "--out", "out", *TINY, cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    return folder, ended.out


def test_the_cost_comes_first_and_the_paper_beside_the_measured_last(pressed: tuple[Path, str]) -> None:
    folder, said = pressed
    cost = re.search(
        r"^4 campaigns, 0 finished, about .* with 1 at a time \(from one timed round of LL-ReAct", said, re.M
    )
    assert cost is not None
    assert said.index("PRE-TRAINED") < cost.start() < said.index("4 of 4 campaigns")
    # paper's rounds 2 to 10; of ours there are two
    assert re.search(r"^ReAct +paper +0\.615 +0\.684", said, re.M)
    assert re.search(r"^LL-ReAct +here +[01]\.\d{3} *$", said, re.M)
    page = (folder / "out" / "auroc.md").read_text()
    assert "PRE-TRAINED" in page
    assert "All 4 campaigns finished; seeds 0;" in page
    assert "| ReAct | paper | 0.615 | 0.684 | 0.776 | 0.819 | 0.849 |" in page
    assert "mqnet paper auroc --scale embeddings --data " in page
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page):
        assert (folder / "out" / picture).read_bytes().startswith(b"\x89PNG")
    assert (folder / "out" / "auroc" / "report.html").read_text().count("PRE-TRAINED")


def test_finished_campaigns_are_not_repeated_and_names_share_them(mqnet, pressed, features: Path) -> None:
    folder, _ = pressed
    before = {path: path.stat().st_mtime_ns for path in (folder / "out" / "cells").glob("*/rounds.json")}
    again = mqnet("paper", "auroc", "--data", features, "--out", "out", *TINY, cwd=folder)
    assert again.code == 0
    assert "4 campaigns, 4 finished." in again.out
    # figure4 needs two forms of mqnet at four shares: those at 40% are there
    planned = mqnet("paper", "figure4", "--data", features, "--out", "out", *TINY, "--dry-run", cwd=folder)
    assert "8 campaigns, 2 finished, about " in planned.out
    assert not (folder / "out" / "figure4").exists()
    other = mqnet("paper", "figure4", "--data", features, "--out", "out", *TINY, cwd=folder)
    assert (other.code, other.err) == (0, "")
    assert re.search(r"^MQ-Net on CIFAR-100 .*paper", other.out, re.M)
    drawn = {path.name for path in (folder / "out" / "figure4").glob("*.png")}
    assert drawn == {"landscape-mqnet.png", "landscape-mqnet-papers-form.png", "slope.png"}
    after = {path: path.stat().st_mtime_ns for path in (folder / "out" / "cells").glob("*/rounds.json")}
    assert before.items() <= after.items()


def test_more_seeds_extend_what_is_there_and_json_says_the_same(mqnet, pressed, features: Path) -> None:
    folder, _ = pressed
    arguments = [*TINY, "--json", "--seeds", "0,3"]
    ended = mqnet("paper", "auroc", "--data", features, "--out", "out", *arguments, cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    first, *_, last = [json.loads(line) for line in ended.out.splitlines()]
    assert (first["cost"]["n_cells"], first["cost"]["n_finished"]) == (8, 4)
    assert first["cost"]["seconds"] > 0
    assert last["page"].endswith("auroc.md")
    (table,) = last["tables"]
    assert ["CSI", "paper", "0.745", "0.772", "0.814", "0.849", "0.870"] in table["rows"]


def test_costs_of_junk_are_columns(mqnet, features: Path, tmp_path: Path) -> None:
    ended = mqnet("paper", "ood-cost", "--data", features, "--out", "out", *TINY, "--rounds", "1", cwd=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    page = (tmp_path / "out" / "ood-cost.md").read_text()
    assert "| strategy |  | c_OOD 0.5 | c_OOD 1 | c_OOD 2 | c_OOD 4 |" in page
    assert "| SIMILAR | paper | 91.05 1) | 88.69 2) | 87.95 | 86.52 |" in page
    (row,) = re.findall(r"^\| similar \| here \| (.*) \|$", page, re.M)
    assert [bool(re.fullmatch(r"\d+\.\d\d", cell)) for cell in row.split(" | ")] == [True] * 4
    assert "Table 1" not in page or "its main table says 88.53" in page


def test_figures_of_a_run(mqnet, pressed) -> None:
    folder, _ = pressed
    ended = mqnet("figures", "out", "--kind", "accuracy", "--kind", "landscape", "--format", "svg", cwd=folder)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == ["out/figures/accuracy.svg", "out/figures/landscape.svg"]
    text = (folder / "out" / "figures" / "landscape.svg").read_text()
    assert "tangent at the lowest-scored item" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tabel1",), "the paper has no 'tabel1' here. Did you mean 'table1'?"),
        (("table1", "--scale", "huge"), "'huge' is no scale."),
        (("table1",), "--scale embeddings needs --data DIR: a folder of frozen CIFAR-10 features"),
        (("cross", "--data", "."), "'.' has no cifar10_train.npy, cifar10_train_labels.npy"),
        (("table1", "--scale", "laptop"), "reads the recipe 'recipes/laptop/"),
        (("table1", "--data", ".", "--seeds", "few"), "--seeds is 'few': say how many (5), or which (0,1,7)."),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(mqnet, arguments, message: str, tmp_path: Path) -> None:
    ended = mqnet("paper", *arguments, cwd=tmp_path)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert list(tmp_path.iterdir()) == []
