"""The paper's numbers as data: the same as printed, with its slips footnoted; entries that fit them."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from mqnet.errors import ConfigError
from mqnet.experiment.figures.kinds import KINDS
from mqnet.experiment.figures.look import LOOKS
from mqnet.experiment.paper.entries import NAMES, entry
from mqnet.experiment.paper.reported import Block, all_blocks, blocks
from tools import ROOT

DATA = Path(os.environ.get("MQNET_SHARED_DATA") or ROOT.parent / "shared" / "data")
PAPER = DATA.parent / "paper" / "mqnet.tex"
CLAIMS = {
    "over_second": lambda mine, others: 100 * (mine / sorted(others)[-1] - 1),
    "over_least": lambda mine, others: 100 * (mine / min(others) - 1),
}


@cache
def printed() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """Every row of every table in the paper: its numbers, and the deviations that follow some of them."""
    rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for table in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", PAPER.read_text(encoding="utf-8"), re.DOTALL):
        for row in table.split(r"\\"):
            deviations = tuple(re.findall(r"\\pm\$([\d.]+)", row))
            plain = re.sub(r"\{\\tiny \$\\pm\$[\d.]+\}", "", row)
            rows.append((tuple(re.findall(r"\d+\.\d+", plain)), deviations))
    return tuple(rows)


def holds(whole: tuple[str, ...], part: tuple[float, ...]) -> bool:
    """Do these numbers stand one after the other in a row of texts?"""
    numbers = [float(text) for text in whole]
    return any(numbers[i : i + len(part)] == list(part) for i in range(len(numbers) - len(part) + 1))


@pytest.mark.data
@pytest.mark.parametrize("block", all_blocks(), ids=lambda b: f"{b.name}-{b.dataset}-{b.measure}-{b.fixed}")
def test_every_number_is_the_papers(block: Block) -> None:
    if block.measure == "slope":  # printed in a sentence, not in a table
        text = PAPER.read_text(encoding="utf-8")
        assert all(f"${value}$" in text for values in block.values.values() for value in values)
        return
    for values in (*block.values.values(), *block.improvement.values()):
        assert any(holds(numbers, values) for numbers, _ in printed()), values
    for row, deviations in block.deviations.items():
        assert any(
            holds(numbers, block.values[row]) and holds(spread, deviations) for numbers, spread in printed() if spread
        ), row


@pytest.mark.parametrize("block", all_blocks(), ids=lambda b: f"{b.name}-{b.dataset}-{b.measure}-{b.fixed}")
def test_every_row_has_a_value_for_every_place(block: Block) -> None:
    for rows in (block.values, block.deviations, block.improvement):
        assert all(len(values) == len(block.at) for values in rows.values())
    for note in block.footnotes:
        assert note.at in block.at
        assert note.row in block.values or note.row in block.improvement


@pytest.mark.parametrize("block", blocks("table1"), ids=lambda b: b.dataset)
def test_leads_follow_from_the_numbers_but_for_the_two_that_are_footnoted(block: Block) -> None:
    others = [row for row in block.values if row not in ("MQ-Net", "RANDOM")]
    for name, printed_leads in block.improvement.items():
        for i, (at, lead) in enumerate(zip(block.at, printed_leads, strict=True)):
            right = CLAIMS[name](block.values["MQ-Net"][i], [block.values[row][i] for row in others])
            note = block.note(name, at)
            if note is None:
                assert lead == pytest.approx(right, abs=0.02)
            else:
                assert lead != pytest.approx(right, abs=0.02)
                assert f"it is {right:.2f}" in note.text
    slips = {("CIFAR-10 (4:6)", 0.1), ("ImageNet (50:950)", 0.2)}
    leads = {(block.dataset, note.at) for note in block.footnotes if note.row == "over_second"}
    assert leads == {slip for slip in slips if slip[0] == block.dataset}


def value(name: str, row: str, at: float, **which: object) -> float:
    (block,) = [
        b for b in blocks(name) if b.dataset == "CIFAR-10 (4:6)" and all(getattr(b, k) == v for k, v in which.items())
    ]
    return block.values[row][block.at.index(at)]


def test_the_other_slips_are_there_and_footnoted() -> None:
    for cost in (0.5, 1):
        assert value("ood-cost", "SIMILAR", cost) == value("ood-cost", "CONF", cost)
        assert blocks("ood-cost")[0].note("SIMILAR", cost) is not None
    assert value("table1", "SIMILAR", 0.4) == 88.53 != value("ood-cost", "SIMILAR", 1)
    assert value("query-purity", "SIMILAR", 10, fixed=0.6, measure="accuracy") == 87.58
    assert value("table1", "SIMILAR", 0.6) == 87.38
    assert value("meta-input", "LL-ReAct", 0.1) == 92.34 < value("meta-input", "BADGE", 0.1) == 92.80
    noted = {(b.name, note.row, note.at) for b in all_blocks() for note in b.footnotes}
    assert {("table1", "SIMILAR", 0.6), ("query-purity", "SIMILAR", 10), ("meta-input", "LL-ReAct", 0.1)} <= noted


@pytest.mark.parametrize("name", NAMES)
def test_entries_fit_their_blocks_and_figures(name: str) -> None:
    found = entry(name)
    labels = [str(choice.get("label", choice["name"])) for choice in found.strategies]
    assert len(set(labels)) == len(labels)
    assert set(labels) <= set(LOOKS), "every line of the paper's figures has a look of its own"
    looks = [(LOOKS[label].colour, LOOKS[label].marker, LOOKS[label].hollow) for label in labels]
    assert len(set(looks)) == len(looks)
    assert set(found.figures) <= set(KINDS)
    for block in found.reported:
        assert set(found.paper_rows.values()) <= set(block.values)
        # what the paper reports is run: every row of the block has a strategy here
        own = block.name == name and block.dataset.startswith(("CIFAR-10 ", "Cross-CIFAR-10"))
        assert not own or set(block.values) == set(found.paper_rows.values())
        if block.axis == "ood_share":
            assert found.ood_share == block.at
        elif block.axis == "cost_ood":
            assert found.costs_ood == block.at
        else:
            assert max(block.at) <= found.rounds
            assert block.fixed in found.ood_share


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no 'table7'.*Did you mean 'table1'.*longer-rounds"):
        entry("table7")
