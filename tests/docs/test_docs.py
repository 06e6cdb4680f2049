"""Every claim in README and docs is run: code blocks, options, keys, columns, links."""

from __future__ import annotations

import dataclasses
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mqnet.cli.main import app
from mqnet.experiment.config import parse_config

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?P<marker>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block, the line it starts at, and the comment right above it: 'not run: why' or 'file: name'."""

    language: str
    text: str
    line: int
    not_run: str | None
    file: str | None


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        kind, _, value = (found["marker"] or "").partition(": ")
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(
            found["language"], found["text"], line, value if kind == "not run" else None,
            value if kind == "file" else None,
        )  # fmt: skip


def commands(block: Block) -> list[list[str]]:
    """The commands of a console block (lines after a prompt) or of a shell block (all lines)."""
    text = block.text.replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_code_block_runs(mqnet, page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.not_run is not None:
            assert block.not_run, f"{where}: say why the block is not run"
        elif block.file is not None:
            (tmp_path / block.file).write_text(block.text)
        elif block.language == "python":
            script = tmp_path / f"block_{block.line}.py"
            script.write_text(block.text)
            ended = mqnet(cwd=tmp_path, script=str(script))
            assert (ended.code, ended.err) == (0, ""), f"{where}: {ended.err}"
        elif block.language in ("console", "bash", "sh"):
            for command, *arguments in commands(block):
                assert command == "mqnet", f"{where}: `{command}` is not run by the tests: mark the block"
                ended = mqnet(*arguments, cwd=tmp_path)
                assert (ended.code, ended.err) == (0, ""), f"{where}: {ended.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_configuration_is_one(page: Path) -> None:
    for block in blocks(page):
        if block.language == "toml" and "[grid]" in block.text:
            parse_config(tomllib.loads(block.text), place=f"{page.name}:{block.line}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name} links to {target}"


def test_every_command_and_option_is_explained() -> None:
    page = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    root: Any = typer.main.get_command(app)
    for name, command in root.commands.items():
        section = re.search(rf"^## `mqnet {name}\b.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert section is not None, f"no page under docs/ has a section on `mqnet {name}`"
        for parameter in command.params:
            shown = parameter.opts[-1] if parameter.param_type_name == "option" else parameter.name.upper()
            assert f"`{shown}" in section[0] or f" {shown}" in section[0], f"`mqnet {name}`: {shown} is not explained"
    for parameter in root.params:
        assert f"`{parameter.opts[-1]}`" in page


def test_every_configuration_key_is_explained() -> None:
    from mqnet.experiment import config

    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for section in (config.ScenarioSection, config.CampaignSection, config.GridSection, config.ExperimentConfig):
        for key in section.model_fields:
            assert re.search(rf"(?:^|[`\[{{ ]){key}(?:[`\]= ]|$)", page, re.MULTILINE), (
                f"'{key}' is not in experiments.md"
            )
    for key, field in config.CoderConfig.model_fields.items():
        row = re.search(rf"^\| [^|]*`{key}`[^|]*\| ([^|]*) \|", page, re.MULTILINE)
        assert row is not None, f"'{key}' of [coder] is not in experiments.md"
        shown = [text.strip("`") for text in row[1].split(", ")]
        defaults = [text.strip('"') if isinstance(field.default, str) else float(text) for text in shown]
        assert field.default in defaults, f"the default of '{key}' is {field.default}"


def test_every_column_of_the_results_is_explained() -> None:
    from mqnet.experiment.results import COLUMNS

    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for column in COLUMNS:
        assert f"`{column}`" in page, f"the column {column} is not in experiments.md"


def test_the_folder_page_names_every_table_and_column() -> None:
    from mqnet.store.campaign import RoundRecord
    from mqnet.store.tables import metadata

    page = (ROOT / "docs" / "campaign-folder.md").read_text(encoding="utf-8")
    for table in metadata.tables.values():
        for name in (table.name, *(column.name for column in table.columns)):
            assert f"`{name}`" in page, f"{table.name}: '{name}' is not in campaign-folder.md"
    assert all(f"`{field.name}`" in page for field in dataclasses.fields(RoundRecord))
