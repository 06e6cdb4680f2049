"""An entry's page: what the paper says, what was measured, the figures, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence

from mqnet import __version__
from mqnet.experiment.contests import contests, reading
from mqnet.experiment.finished import standing
from mqnet.experiment.paper import compare
from mqnet.experiment.paper.pictures import Picture
from mqnet.experiment.paper.press import Press
from mqnet.experiment.paper.slopes import slope_tables
from mqnet.experiment.results import Results
from mqnet.experiment.tables import table
from mqnet.experiment.tables.shape import Table


def tables_of(press: Press, results: Results, *, elsewhere: bool = True) -> list[Table]:
    """The paper beside what was measured, and last (`elsewhere`) what it reports on data that did not run here."""
    scaled = press.scaled
    blocks = [block for block in scaled.entry.reported if block.measure in compare.MEASURES]
    here = [block for block in blocks if block.dataset == scaled.dataset]
    out = [compare.beside(scaled, block, results) for block in here]
    if "slope" in scaled.entry.figures:
        out += slope_tables(press)
    elif not here:
        out.append(compare.final_accuracy(scaled, results))
    return out + [compare.only_paper(block) for block in blocks if elsewhere and block.dataset != scaled.dataset]


def reading_of(results: Results) -> str:
    """Who wins, in words: for the default form, and for the paper's literal one where it ran."""
    who = [name for name in (compare.FAVOURITE, compare.LITERAL) if name in results.strategies]
    said = [reading(contests(results, name), name) for name in who]
    if any("**ties**" in sentence for sentence in said):
        said.append("A tie means not told apart by these seeds, not alike.")
    return " ".join(dict.fromkeys(said))


def page(press: Press, results: Results, command: str, shown: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """The page as Markdown, with its tables and pictures."""
    entry, scaled = press.scaled.entry, press.scaled
    found = standing(press.out, press.cells())
    missing = found.n_cells - found.n_finished
    state = f"All {found.n_cells}" if not missing else f"PARTIAL: {found.n_finished} of {found.n_cells}"
    seeds = ", ".join(map(str, scaled.config.grid.seeds))
    tested: list[str] = []
    if contests(results, compare.FAVOURITE):
        tested.append(table(results, "paired", favourite=compare.FAVOURITE, metric="final").markdown())
    parts = [
        f"# {entry.title}",
        f"    {command}",
        f"**{scaled.label}**" if scaled.pretrained else scaled.label,
        f"The paper says: {entry.claims}",
        f"Measured here: {_setting(press)} {state} campaigns finished; seeds {seeds}; mqnet {__version__}.",
        *entry.notes,
        *(one.markdown() for one in shown),
        "## Reading",
        reading_of(results),
        *tested,
        *(["## Figures"] if pictures else []),
        *(f"![{picture.caption}]({picture.file})\n\n{picture.caption}" for picture in pictures),
    ]
    return "\n\n".join(parts) + "\n"


def _setting(press: Press) -> str:
    config = press.scaled.config
    scenario, campaign = config.scenario, config.campaign
    known = f"{scenario.known_classes} known classes drawn by seed" if scenario.known_classes else "all classes known"
    pool = f"a pool of {scenario.pool_size:,} items, " if scenario.pool_size else ""
    return f"{scenario.label}, {known}, {pool}{campaign.rounds} rounds of budget {campaign.budget:g}."
