"""Figures: the right series on the right axes, one look per strategy, colours that colour-blind readers tell apart."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from mqnet.errors import ConfigError, InputError
from mqnet.experiment.figures.kinds import OF_RESULTS, Subject, draw, drawable
from mqnet.experiment.figures.look import COLUMN, LOOKS, PAGE, look
from mqnet.experiment.figures.sheet import FORMATS, save, svg
from mqnet.experiment.figures.slope import slopes_over_rounds
from mqnet.experiment.results import Results, Row
from mqnet.experiment.simulate import RoundResult

SHARES, SEEDS, ROUNDS = (0.2, 0.6), (0, 1, 2), 4
NAMES = ("random", "mqnet", "my_own $x$")


def row(name: str, share: float, seed: int, r: int, auroc: float = math.nan, peak: float = 512.0) -> Row:
    accuracy = 0.5 + 0.05 * r + 0.01 * seed + 0.02 * NAMES.index(name) - 0.1 * share
    known = 10 + 6 * r
    return Row(
        "cifar10", name, share, seed,
        RoundResult(r + 1, accuracy, 10.0 * (r + 1), known, 4 * r, 0.6 + 0.1 * NAMES.index(name), auroc, 0.5,
                    0.3, 0.1, 0.02, 0.0, peak),
        "cell",
    )  # fmt: skip


def results(**how: float) -> Results:
    return Results(
        row(name, share, seed, r, **how) for name in NAMES for share in SHARES for seed in SEEDS for r in range(ROUNDS)
    )


def curves_of(figure: Figure) -> list[dict[str, np.ndarray]]:
    """The labelled lines of every panel: label to its points [2, n]."""
    return [
        {
            str(line.get_label()): np.asarray(line.get_xydata()).T
            for line in axes.get_lines()
            if not str(line.get_label()).startswith("_")
        }
        for axes in figure.axes
        if axes.get_visible()
    ]


@pytest.mark.parametrize(
    ("kind", "x", "y"),
    [
        ("accuracy", "round", "test accuracy (%)"),
        ("accuracy-cost", "cost spent (c_IN = 1)", "test accuracy (%)"),
        ("known-share", "round", "known in the query (%)"),
        ("wasted", "cost spent (c_IN = 1)", "OOD labels bought"),
        ("auroc", "round", "AUROC of the purity score"),
    ],
)
def test_a_panel_per_share_with_every_strategy_and_named_axes(kind: str, x: str, y: str) -> None:
    figure = OF_RESULTS[kind](results(auroc=0.8))
    assert figure.get_figwidth() == PAGE
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["20% OOD", "60% OOD"]
    assert {axes.get_xlabel() for axes in shown} == {x}
    assert shown[0].get_ylabel() == y
    for lines in curves_of(figure):
        assert list(lines) == ["random", "mqnet", r"my_own \$x\$"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["random", "mqnet", r"my_own \$x\$"]


def test_lines_are_means_over_seeds_and_bands_their_deviation() -> None:
    figure = OF_RESULTS["accuracy"](results())
    x, y = curves_of(figure)[1]["mqnet"]
    assert x.tolist() == [1, 2, 3, 4]
    assert y == pytest.approx([0.5 + 0.05 * r + 0.01 + 0.02 - 0.06 for r in range(ROUNDS)])
    band = figure.axes[1].collections[1].get_paths()[0].vertices
    # seeds differ by 0.01 each: a standard deviation of 0.01
    assert band[:, 1].min() == pytest.approx(y[0] - 0.01)
    assert band[:, 1].max() == pytest.approx(y[-1] + 0.01)


def test_precision_against_accuracy_has_a_point_for_every_strategy() -> None:
    figure = OF_RESULTS["precision-accuracy"](results())
    axes = figure.axes[0]
    assert axes.get_xlabel() == "known items in queries (%)"
    (x, y), *_ = [np.asarray(c.lines[0].get_xydata())[0] for c in axes.containers]
    # random at 20%: rounds 2 to 4 of seeds 0 to 2
    assert (x, y) == pytest.approx((60.0, 0.5 + 0.05 * 2 + 0.01 - 0.02))
    assert len(axes.containers) == len(NAMES)


def test_time_and_memory_names_every_strategy_and_leaves_memory_out_where_it_was_not_measured() -> None:
    figure = OF_RESULTS["time-memory"](results())
    bars, dots = figure.axes
    assert [text.get_text() for text in bars.get_yticklabels()] == ["random", "mqnet", r"my_own \$x\$"]
    assert bars.get_xlabel() == "seconds a round, one thread"
    assert dots.get_xlabel() == "peak memory of the process (GB)"
    widths = [patch.get_width() for patch in bars.containers[0]]
    assert widths == pytest.approx([0.3] * len(NAMES))
    ends = [line.get_xdata()[0] for line in dots.get_lines()[1::2]]
    assert ends == pytest.approx([0.5] * len(NAMES))
    (alone,) = OF_RESULTS["time-memory"](results(peak=math.nan)).axes
    assert alone.get_xlabel() == "seconds a round, one thread"


def test_longer_rounds_show_the_paired_lead_over_random() -> None:
    figure = OF_RESULTS["longer"](results())
    above, below = curves_of(figure)[0], curves_of(figure)[2]
    assert list(above) == ["random", "mqnet", r"my_own \$x\$"]
    assert list(below) == ["mqnet", r"my_own \$x\$"]
    assert below["mqnet"][1] == pytest.approx([2.0] * ROUNDS)
    assert figure.axes[2].get_ylabel() == "minus random (points)"


def test_one_setting_takes_one_column() -> None:
    only = results().only(shares=[0.6])
    assert OF_RESULTS["accuracy"](only).get_figwidth() == COLUMN


def test_titles_over_several_scenarios_tell_them_apart_and_stay_within_their_panel() -> None:
    def titles(*names: str) -> list[str]:
        rows = [Row(**{**vars(r), "scenario": name}) for name in names for r in results().only(shares=[0.6]).rows]
        return [axes.get_title() for axes in OF_RESULTS["accuracy"](Results(rows)).figure.axes]

    assert titles("cifar10, OOD cost 1", "cifar10, OOD cost 4") == ["OOD cost 1\n60% OOD", "OOD cost 4\n60% OOD"]
    long = titles("a scenario with quite a long name, x", "b, x")[0]
    assert long == "a scenario with quite a\nlong name, x\n60% OOD"


def test_slopes_are_medians_cut_where_they_say_nothing() -> None:
    slopes = np.array([[-1.0, -np.inf], [-2.0, -0.001], [-4.0, -0.001]])
    figure = slopes_over_rounds([("mqnet", {0.1: slopes, 0.6: slopes / 2})])
    (lines,) = curves_of(figure)
    assert lines["10% OOD"].tolist() == [[1, 2], [2.0, 0.05]]
    assert figure.axes[0].get_yscale() == "log"


def test_without_a_purity_score_there_is_no_auroc() -> None:
    with pytest.raises(InputError, match="no strategy of this run has a purity score"):
        OF_RESULTS["auroc"](results())
    assert drawable(Subject(Path(), (), results())) == [kind for kind in OF_RESULTS if kind not in ("auroc", "longer")]
    assert "auroc" in drawable(Subject(Path(), (), results(auroc=0.7)))


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no figure is called 'acuracy'.*Did you mean 'accuracy'"):
        draw("acuracy", Subject(Path(), (), results()))
    with pytest.raises(InputError, match="no cell"):
        draw("accuracy", Subject(Path("out"), (), Results([])))


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_what_their_names_say_and_the_same_again(form, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(OF_RESULTS["accuracy"](results()), tmp_path / f"{name}.{form}", form)
    one, two = ((tmp_path / f"{name}.{form}").read_bytes() for name in ("one", "two"))
    assert one.startswith({"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}[form])
    assert one == two


def test_names_are_text_in_an_svg_and_harmless() -> None:
    hostile = [r for r in results().rows if r.strategy == "mqnet"]
    named = Results([Row(**{**vars(r), "strategy": "<script>alert(1)</script> & $\\frac$"}) for r in hostile])
    drawing = svg(OF_RESULTS["accuracy"](named))
    assert "<script" not in drawing
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; $\\frac$" in drawing


# -- colours -----------------------------------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as a protanope, deuteranope and tritanope sees it
VISION = {
    "usual": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TABLE1 = ("random", "confidence", "coreset", "ll", "badge", "ccal", "similar", "mqnet", "mqnet, paper's form")


def lab(colour: str, vision: np.ndarray) -> np.ndarray:
    """CIE Lab of a colour under a kind of vision."""
    rgb = np.asarray(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(vision @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.asarray(to_xyz) @ seen / [0.9505, 1.0, 1.089]
    f = [np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_the_papers_strategies_are_told_apart_by_colour_or_else_by_marker(vision: str) -> None:
    for one, other in itertools.combinations(TABLE1, 2):
        first, second = look(one), look(other)
        distance = np.linalg.norm(lab(first.colour, VISION[vision]) - lab(second.colour, VISION[vision]))
        assert distance > 8, (one, other, vision, distance)
        assert (first.marker, first.hollow) != (second.marker, second.hollow)


def test_no_two_strategies_that_ship_look_alike_and_an_own_one_keeps_its_look() -> None:
    shipped = [name for name in LOOKS if " " not in name and not name[0].isupper()]
    looks = {(LOOKS[name].colour, LOOKS[name].marker) for name in shipped}
    assert len(looks) == len(shipped)
    assert look("my_own") == look("my_own")
    assert look("my_own") != look("another")
    # light colours are lost on white paper
    for name, one in LOOKS.items():
        rgb = np.asarray(to_rgb(one.colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) > 2.2, name
