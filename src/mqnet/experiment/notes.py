"""What must stand beside every table in which some strategies had more than the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mqnet.experiment.results import Results


def reserve_notes(results: Results, rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """That strategies with `validation = "random"` learned from labels nobody paid for; nothing if no row names one."""
    shown = {text for row in rows for text in row}
    names = [
        name
        for name in results.strategies
        if name in shown and results.plugin(name).options.get("validation") == "random"
    ]
    if not names:
        return ()
    return (
        f"{', '.join(names)}: learns from as many independent items as a query holds, junk at the pool's share, which "
        "are not charged: their labels would cost a budget of their own. They are set apart before the pool is built; "
        "where the data leave too few beside it, the pool of this strategy is smaller by as many.",
    )
