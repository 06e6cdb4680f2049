"""Strategies by mean rank, with what cannot be told apart: a critical-difference diagram as a table."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mqnet.errors import InputError
from mqnet.experiment.comparison import critical_difference, friedman, groups, ranks
from mqnet.experiment.results import Results
from mqnet.experiment.tables._layout import METRICS, is_reference
from mqnet.experiment.tables.paired import p_text
from mqnet.experiment.tables.registry import kind_of_table
from mqnet.experiment.tables.shape import Table

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@kind_of_table("ranking")
def ranking(results: Results, *, metric: Literal["aulc", "final", "aulc-cost"] = "aulc", alpha: float = 0.05) -> Table:
    """Mean ranks over scenario, OOD share and seed; strategies that share a letter are not told apart (Nemenyi).

    A block is one scenario, share and seed in which every strategy has run. Reference lines take no part.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha:g}: a level of significance lies between 0 and 1.")
    name, measure = METRICS[metric]
    shown = [strategy for strategy in results.strategies if not is_reference(results, strategy)]
    blocks: list[list[float]] = []
    for setting in results.settings:
        trials = results.paired(*setting, *shown)
        if trials is not None:
            blocks += np.stack([measure(curves) for curves in trials], axis=1).tolist()
    if len(shown) < 2 or len(blocks) < 2:
        raise InputError(
            f"a ranking needs at least two strategies and two (scenario, OOD share, seed) in which all ran; there are "
            f"{len(shown)} and {len(blocks)}. Leave out strategies that ran elsewhere (`--strategy`)."
        )
    values = np.asarray(blocks)
    placed = ranks(values)
    mean_ranks = placed.mean(axis=0)
    test, gap = friedman(values), critical_difference(len(shown), len(blocks), alpha)
    # a post-hoc test without a first one that says "they differ" tells nothing apart
    differ = test.p < alpha
    sets = groups(mean_ranks.tolist(), gap) if differ else [tuple(range(len(shown)))]
    order = np.argsort(mean_ranks, kind="stable").tolist()
    rows = tuple(
        (
            shown[i],
            f"{mean_ranks[i]:.2f}",
            str(int((placed[:, i] == 1).sum())),
            f"{100 * values[:, i].mean():.2f}",
            "".join(LETTERS[k % len(LETTERS)] for k, members in enumerate(sets) if i in members),
        )
        for i in order
    )
    verdict = "they differ" if differ else "no difference is shown"
    return Table(
        f"Strategies by mean rank of {name}, {len(blocks)} blocks (scenario, OOD share, seed)",
        ("strategy", "mean rank", "first", name, "not told apart"),
        rows,
        (f"Friedman's test: chi-square({len(shown) - 1}) = {test.statistic:.2f}, p {_equals(test.p)}: {verdict}. "
         f"Nemenyi's critical difference at {alpha:g}: {gap:.2f}; strategies that share a letter are not told apart.",
         "Blocks of one seed share their classes and those of one scenario their items: they are not quite "
         "independent, and p is smaller than it should be."),
    )  # fmt: skip


def _equals(p: float) -> str:
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"
