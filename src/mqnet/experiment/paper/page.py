"""An entry's page: what the paper says, what was measured, the figures, and how to read it."""

from __future__ import annotations

from collections.abc import Sequence

from mqnet import __version__
from mqnet.experiment.paper import compare
from mqnet.experiment.paper.press import Press
from mqnet.experiment.results import Results
from mqnet.experiment.summary import Table


def tables_of(press: Press, results: Results, *, elsewhere: bool = True) -> list[Table]:
    """The paper beside what was measured, and last (`elsewhere`) what it reports on data that did not run here."""
    scaled = press.scaled
    blocks = [block for block in scaled.entry.reported if block.measure in compare.MEASURES]
    here = [block for block in blocks if block.dataset == scaled.dataset]
    out = [compare.beside(scaled, block, results) for block in here]
    if not here and scaled.entry.name != "figure4":
        out.append(compare.final_accuracy(scaled, results))
    return out + [compare.only_paper(block) for block in blocks if elsewhere and block.dataset != scaled.dataset]


def page(
    press: Press, results: Results, command: str, pictures: Sequence[tuple[str, str]], more: Sequence[Table]
) -> str:
    """The page as Markdown; `pictures` are files beside it with their captions, `more` tables of the entry's own."""
    entry, scaled = press.scaled.entry, press.scaled
    cells = press.cells()
    finished = len({row.cell for row in press.rows()})
    config = scaled.configs[0]
    n_seeds = len(config.grid.seeds)
    found = compare.contests(results)
    state = "all" if finished == len({cell.digest for cell in cells}) else "PARTIAL:"
    parts = [
        f"# {entry.title}",
        f"`{command}`",
        f"**{scaled.label}**",
        f"**The paper says.** {entry.claims}",
        f"**Measured.** {_setting(press)} {state} {finished} of {len({cell.digest for cell in cells})} campaigns "
        f"finished; {n_seeds} seeds, mqnet {__version__}.",
        *entry.notes,
        *(table.markdown() for table in (*more, *tables_of(press, results))),
        "## Reading",
        compare.reading(found, n_seeds),
        *([compare.contest_table(found).markdown()] if found else []),
        *(["## Figures"] if pictures else []),
        *(f"![{caption}]({name})\n\n{caption}" for name, caption in pictures),
    ]
    return "\n\n".join(parts) + "\n"


def _setting(press: Press) -> str:
    config = press.scaled.configs[0]
    scenario, campaign = config.scenario, config.campaign
    known = f"{scenario.known_classes} known classes drawn by seed" if scenario.known_classes else "all classes known"
    pool = f"pool of {scenario.pool_size:,} items, " if scenario.pool_size else ""
    return f"{scenario.label}: {known}, {pool}{campaign.rounds} rounds of budget {campaign.budget:g}."
