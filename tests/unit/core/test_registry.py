"""Plug-ins: found by name, from three places; a name twice, an unknown one, a broken file are errors that say so."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from mqnet import registry as registry_module
from mqnet.errors import ConfigError, PluginError
from mqnet.registry import INFORMATIVENESS, MODEL, PURITY, STRATEGY, Registry, load_plugin
from mqnet.testing import make_scene


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package of plug-ins; what the test registers goes away with it."""
    folder = tmp_path / "roomy"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("roomy")]:
        del sys.modules[name]
    return folder


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The purity registry, put back afterwards."""
    PURITY.names()
    monkeypatch.setattr(PURITY, "_entries", dict(PURITY._entries))
    return PURITY


def first(view, *, power: float = 1.0) -> Tensor:
    """The first number of each item. And more."""
    return view.column("embedding")[:, 0].float() ** power


def test_what_ships_is_found() -> None:
    assert {"random", "confidence", "margin", "entropy", "oracle-purity", "sum", "product"} <= set(STRATEGY.names())
    assert "knn" in PURITY.names()
    assert {"confidence", "margin", "entropy"} <= set(INFORMATIVENESS.names())
    assert {"head", "sklearn"} <= set(MODEL.names())
    assert STRATEGY.get("oracle-purity").reference
    assert PURITY.get("knn").options["k"] == 5
    assert STRATEGY.get("sum").options["purity_options"] == {}


def test_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(
        PluginError, match=r"no strategy is called 'confidense'. Did you mean 'confidence'\? Choices: .*random"
    ):
        STRATEGY.get("confidense")


def test_an_unknown_option_lists_the_choices() -> None:
    with pytest.raises(PluginError, match=r"purity 'knn' has no option 'K'.*Choices: k"):
        PURITY.score("knn", {"K": 3})
    with pytest.raises(PluginError, match=r"strategy 'random' has no option 'seed'. Choices: none"):
        STRATEGY.make("random", {"seed": 3})


def test_a_name_twice_names_both_places(room: Path) -> None:
    plugins = Registry("purity", "roomy")
    plugins.register("mine")(first)
    plugins.register("mine")(first)  # the same one again: a module imported twice
    with pytest.raises(PluginError, match=r"purity 'mine' is registered twice: .*first and .*second"):

        @plugins.register("mine")
        def second(view) -> Tensor:
            return first(view)

    assert plugins.get("mine").target is first


def test_a_score_with_its_options(kept: Registry) -> None:
    kept.register("first", needs={"embedding"})(first)
    view = make_scene().view
    score = kept.score("first", {"power": 2.0})
    assert torch.equal(score(view), view.column("embedding")[:, 0] ** 2)
    assert score.needs == {"embedding"}
    assert score.entry.options == {"power": 1.0}
    assert score.entry.summary == "The first number of each item. And more."


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda view: None, "returned NoneType"),
        (lambda view: torch.zeros(len(view), 1), r"returned \(72, 1\); expected one number per item \(72,\)"),
        (lambda view: torch.full((len(view),), torch.nan), "is nan for item '"),
        (lambda view: torch.arange(len(view)) / 0.0, "for item '"),
    ],
)
def test_a_score_that_is_none_is_refused(kept: Registry, returned, message: str) -> None:
    kept.register("broken")(returned)
    with pytest.raises(PluginError, match=message):
        kept.score("broken")(make_scene().view)


def test_a_column_that_was_not_computed_is_named() -> None:
    with pytest.raises(PluginError, match=r"'logit' was not computed. Did you mean 'logits'"):
        make_scene().view.column("logit")


def test_a_room_is_walked_once_asked(room: Path) -> None:
    (room / "good.py").write_text("from roomy_registry import R\n@R.register('good')\ndef good(view): 'Good.'\n")
    (room / "_private.py").write_text("raise RuntimeError('nobody imports this')\n")
    plugins = Registry("purity", "roomy")
    holder = ModuleType("roomy_registry")
    holder.R = plugins
    sys.modules["roomy_registry"] = holder
    assert "roomy.good" not in sys.modules
    assert plugins.names() == ("good",)
    del sys.modules["roomy_registry"]


def test_a_broken_room_stays_broken(room: Path) -> None:
    (room / "broken.py").write_text("raise RuntimeError('not today')\n")
    plugins = Registry("purity", "roomy")
    for _ in range(2):  # the second look-up must not find a registry with a hole
        with pytest.raises(RuntimeError, match="not today"):
            plugins.names()


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "mqnet.purity")


def test_entry_points_of_other_packages(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = Registry("purity", "roomy")
    other = ModuleType("other_package")
    other.register = plugins.register
    monkeypatch.setitem(sys.modules, "other_package", other)

    def points(*, group: str) -> list[EntryPoint]:
        assert group == "mqnet.purity"
        return [point("theirs", "their_module:theirs")]

    (room.parent / "their_module.py").write_text(
        "import other_package\n@other_package.register('theirs')\ndef theirs(view): 'Theirs.'\n"
    )
    monkeypatch.setattr(registry_module, "entry_points", points)
    assert plugins.names() == ("theirs",)


@pytest.mark.parametrize("value", ["no_such_module:thing", "json:no_such_name"])
def test_a_broken_entry_point_is_named(room: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(registry_module, "entry_points", lambda group: [point("theirs", value)])
    plugins = Registry("purity", "roomy")
    for _ in range(2):
        with pytest.raises(PluginError, match=rf"the purity plug-in 'theirs' \({value}\) does not load"):
            plugins.get("theirs")


GOOD = """
from mqnet.registry import purity

@purity("{name}", needs={{"embedding"}})
def {name}(view):
    "A score from a file."
    return view.column("embedding")[:, 0]
"""


def test_a_plugin_file(tmp_path: Path, kept: Registry) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD.format(name="from_file"))
    load_plugin(file)
    load_plugin(file)
    assert kept.get("from_file").summary == "A score from a file."
    # another file of the same name in another folder is another plug-in
    other = tmp_path / "elsewhere" / "mine.py"
    other.parent.mkdir()
    other.write_text(GOOD.format(name="from_elsewhere"))
    load_plugin(other)
    assert {"from_file", "from_elsewhere"} <= set(kept.names())
    other.with_name("mine2.py").write_text(GOOD.format(name="from_file"))
    with pytest.raises(PluginError, match="registered twice"):
        load_plugin(other.with_name("mine2.py"))


@pytest.mark.parametrize("content", ["this is not Python", "import no_such_module", "1 / 0", GOOD.format(name="knn")])
def test_a_broken_plugin_file_is_named_each_time(tmp_path: Path, kept: Registry, content: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(content)
    for _ in range(2):
        with pytest.raises(PluginError, match=r"broken\.py' does not load|registered twice"):
            load_plugin(file)


def test_a_plugin_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="does not exist"):
        load_plugin(tmp_path / "nothing.py")
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(PluginError, match="is not Python"):
        load_plugin(tmp_path / "text.txt")


def test_a_reference_line_is_for_simulations_only() -> None:
    from mqnet.loop.learner import ActiveLearner

    with pytest.raises(ConfigError, match=r"oracle-purity.*simulations only"):
        ActiveLearner(torch.zeros(3, 2), ["a"], budget=2, strategy="oracle-purity")


def test_importing_mqnet_loads_neither_plugins_nor_torch() -> None:
    code = "import sys, mqnet, mqnet.types, mqnet.ids, mqnet.store.campaign; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
