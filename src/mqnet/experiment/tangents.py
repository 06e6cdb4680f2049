"""Explanations and slopes of a run's MQ-Net campaigns, computed again from what is stored with their rounds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.campaigns import cell_learner
from mqnet.experiment.cells import Cell
from mqnet.experiment.stored import cell_folder
from mqnet.loop.explain import Explanation, explain
from mqnet.scale.local import run_tasks
from mqnet.store.blobs import write_durably

SLOPES = "slopes.json"


def of_mqnet(out: Path, cells: Sequence[Cell]) -> list[Cell]:
    """The finished cells of mqnet; none is an error."""
    found = _finished(out, cells)
    if not found:
        raise InputError(f"'{out}' holds no finished campaign of mqnet: only its score has a landscape.")
    return found


def has_mqnet(out: Path, cells: Sequence[Cell]) -> bool:
    """Has a campaign of mqnet finished there?"""
    return bool(_finished(out, cells))


def _finished(out: Path, cells: Sequence[Cell]) -> list[Cell]:
    return [
        cell for cell in cells if cell.strategy.name == "mqnet" and (cell_folder(out, cell) / "rounds.json").is_file()
    ]


def landscape_rows(out: Path, cells: Sequence[Cell]) -> list[list[tuple[str, Explanation]]]:
    """Four rounds of the first campaign with the least junk, and the last round of the first one at every OOD share.

    The rounds are 3, 5, 7 and 9 as in the paper, or four spread over a shorter campaign.
    """
    first: dict[float, Cell] = {}
    for cell in of_mqnet(out, cells):
        first.setdefault(cell.ood_share, cell)
    shares = sorted(first)
    n_rounds = first[shares[0]].config.campaign.rounds
    rounds = (3, 5, 7, 9) if n_rounds >= 9 else sorted({int(r) for r in np.linspace(min(2, n_rounds), n_rounds, 4)})
    over_rounds: list[tuple[str, Explanation]] = []
    with cell_learner(out, first[shares[0]]) as learner:
        over_rounds += [(f"{shares[0]:.0%} OOD, round {r}", explain(learner, r)) for r in rounds]
    over_noise: list[tuple[str, Explanation]] = []
    for share in shares[:4]:
        with cell_learner(out, first[share]) as learner:
            over_noise.append((f"{share:.0%} OOD, round {n_rounds}", explain(learner, n_rounds)))
    return [over_rounds, over_noise] if len(shares) > 1 else [over_rounds]


def slopes(out: Path, cells: Sequence[Cell], jobs: int) -> dict[str, dict[float, np.ndarray]]:
    """Slopes of whole queries and of their lowest-scored items [2, seeds, rounds] by strategy and OOD share.

    Kept in the campaign's folder once computed.
    """
    found = of_mqnet(out, cells)
    missing = [(out, cell) for cell in found if not (cell_folder(out, cell) / SLOPES).is_file()]
    for _, outcome in run_tasks(_keep_slopes, missing, jobs=jobs):
        if isinstance(outcome, BaseException):
            raise outcome
    gathered: dict[str, dict[float, list[list[list[float]]]]] = {}
    for cell in found:
        stored = json.loads((cell_folder(out, cell) / SLOPES).read_text())
        gathered.setdefault(cell.strategy_label, {}).setdefault(cell.ood_share, []).append(
            [[float("-inf") if value is None else value for value in stored[name]] for name in ("query", "lowest")]
        )
    return {
        label: {share: np.moveaxis(np.asarray(seeds), 1, 0) for share, seeds in by_share.items()}
        for label, by_share in gathered.items()
    }


def _keep_slopes(task: tuple[Path, Cell]) -> None:
    out, cell = task
    with cell_learner(out, cell) as learner:
        found = [explain(learner, r) for r in range(1, len(learner.store.rounds()))]
    stored = {
        "query": [_finite(one.mean_slope) for one in found],
        "lowest": [_finite(one.slope) for one in found],
    }
    write_durably(cell_folder(out, cell) / SLOPES, json.dumps(stored).encode())


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
