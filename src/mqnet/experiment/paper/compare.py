"""What the paper reports beside what was measured, and who wins here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mqnet.experiment.contests import setting_name
from mqnet.experiment.paper.reported import Block
from mqnet.experiment.paper.scales import Scaled
from mqnet.experiment.results import Curves, Results
from mqnet.experiment.summary import ORACLE, RANDOM
from mqnet.experiment.tables.shape import Table

FAVOURITE, LITERAL = "mqnet", "mqnet, paper's form"
MEASURES = {
    "accuracy": "test accuracy, %",
    "query_known_share": "known items in the query, %",
    "purity_auroc": "AUROC of the purity score",
}


def beside(scaled: Scaled, block: Block, results: Results) -> Table:
    """Two rows for every strategy that the paper reports or we ran: the paper's numbers, and the measured ones."""
    of_row: dict[str, list[str]] = {row: [] for row in block.values}
    for label, row in scaled.entry.paper_rows.items():
        of_row.setdefault(row, []).append(label)
    named = {label for labels in of_row.values() for label in labels}
    rows: list[tuple[str, ...]] = []
    rules: list[int] = []
    remarks: list[str] = []
    for row, labels in of_row.items():
        rules.append(len(rows))
        if row in block.values:
            rows.append((row, "paper", *_printed(block, row, remarks)))
        rows += [(label, "here", *_measured(scaled, block, results, label)) for label in labels]
    rest = [strategy for strategy in results.strategies if strategy not in named]
    rules.append(len(rows))
    rows += [(label, "here", *_measured(scaled, block, results, label)) for label in rest]
    rules.append(len(rows))
    if block.improvement:
        rows += _improvements(block, results, scaled, remarks)
    fixed = f", {block.fixed:.0%} OOD" if block.fixed is not None else ""
    return Table(
        title=f"{MEASURES[block.measure]}{fixed}: the paper on {block.dataset}, measured on {_scenario(scaled)}",
        columns=("strategy", "", *_heads(block)),
        rows=tuple(rows),
        notes=tuple(remarks),
        n_names=2,
        rules=tuple(row for row in dict.fromkeys(rules) if 0 < row < len(rows)),
    )


def only_paper(block: Block) -> Table:
    """A block of the paper alone, where nothing was measured beside it."""
    remarks: list[str] = []
    rows = [(row, *_printed(block, row, remarks)) for row in block.values]
    rows += [(_LEADS[name], *_leads(block, name, remarks)) for name in block.improvement]
    title = f"{MEASURES[block.measure]}: the paper on {block.dataset}"
    return Table(title, ("strategy", *_heads(block)), tuple(rows), tuple(remarks))


def final_accuracy(scaled: Scaled, results: Results) -> Table:
    """Final accuracy of every strategy at every setting, for entries the paper prints no numbers of."""
    heads = tuple(setting_name(results, scenario, share) for scenario, share in results.settings)
    rows = tuple(
        (strategy, *(_final(results.get(scenario, share, strategy)) for scenario, share in results.settings))
        for strategy in results.strategies
    )
    return Table(f"final {MEASURES['accuracy']}, measured on {_scenario(scaled)}", ("strategy", *heads), rows)


_LEADS = {
    "over_second": "MQ-Net over the second best, % of it",
    "over_least": "MQ-Net over the least but random, % of it",
}


def _improvements(block: Block, results: Results, scaled: Scaled, remarks: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    others = [
        label
        for label, row in scaled.entry.paper_rows.items()
        if row not in ("MQ-Net", "RANDOM") and label not in (RANDOM, ORACLE)
    ]
    for name in block.improvement:
        rows.append((_LEADS[name], "paper", *_leads(block, name, remarks)))
        found: list[str] = []
        for at in block.at:
            curves = {label: _curves(scaled, block, results, label, at) for label in (FAVOURITE, *others, RANDOM)}
            ends = {label: 100 * c["accuracy"][:, -1].mean() for label, c in curves.items() if c is not None}
            mine = ends.pop(FAVOURITE, None)
            if name == "over_least":
                ends.pop(RANDOM, None)
            if mine is None or not ends:
                found.append("")
                continue
            base = max(ends.values()) if name == "over_second" else min(ends.values())
            found.append(f"{100 * (mine - base) / base:+.2f}")
        rows.append((_LEADS[name].replace("MQ-Net", FAVOURITE), "here", *found))
    return rows


def _leads(block: Block, name: str, remarks: list[str]) -> list[str]:
    return [
        f"{value:g}{_mark(block, name, at, remarks)}"
        for at, value in zip(block.at, block.improvement[name], strict=True)
    ]


def _printed(block: Block, row: str, remarks: list[str]) -> list[str]:
    digits = 3 if block.measure == "purity_auroc" else 2
    deviations = block.deviations.get(row, (None,) * len(block.at))
    return [
        f"{value:.{digits}f}{f' ± {spread:.2f}' if spread is not None else ''}{_mark(block, row, at, remarks)}"
        for at, value, spread in zip(block.at, block.values[row], deviations, strict=True)
    ]


def _mark(block: Block, row: str, at: float, remarks: list[str]) -> str:
    note = block.note(row, at)
    if note is None:
        return ""
    if (text := f"{len(remarks) + 1}) {note.text}") not in remarks:
        remarks.append(text)
    return f" {len(remarks)})"


def _measured(scaled: Scaled, block: Block, results: Results, label: str) -> list[str]:
    out: list[str] = []
    for at in block.at:
        curves = _curves(scaled, block, results, label, at)
        if curves is None:
            out.append("")
        elif block.axis == "round":
            values = curves[block.measure]
            r = int(at) - 1
            out.append(_mean(values[:, r], block.measure) if r < values.shape[1] else "")
        else:
            out.append(_final(curves))
    return out


def _curves(scaled: Scaled, block: Block, results: Results, label: str, at: float) -> Curves | None:
    share = at if block.axis == "ood_share" else block.fixed
    assert share is not None
    label_of = [name for name in results.scenarios if block.axis != "cost_ood" or name.endswith(f"OOD cost {at:g}")]
    return next((found for name in label_of if (found := results.get(name, share, label)) is not None), None)


def _final(curves: Curves | None) -> str:
    if curves is None:
        return ""
    ends = 100 * curves["accuracy"][:, -1]
    return f"{ends.mean():.2f}" + (f" ± {ends.std(ddof=1):.2f}" if len(ends) > 1 else "")


def _mean(values: NDArray[np.float64], measure: str) -> str:
    if np.isnan(values).any():
        return ""
    return f"{values.mean():.3f}" if measure == "purity_auroc" else f"{100 * values.mean():.2f}"


def _heads(block: Block) -> tuple[str, ...]:
    if block.axis == "ood_share":
        return tuple(f"{at:.0%} OOD" for at in block.at)
    return tuple(f"c_OOD {at:g}" if block.axis == "cost_ood" else f"round {at:g}" for at in block.at)


def _scenario(scaled: Scaled) -> str:
    return scaled.config.scenario.label
