"""`mqnet explain`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from mqnet.experiment.campaigns import open_campaign
from mqnet.experiment.figures.landscape import score_landscape
from mqnet.experiment.figures.sheet import svg
from mqnet.loop.explain import explain, why
from mqnet.store.blobs import write_durably


def show(folder: Path, round_: int, item: str | None, cell: str | None, out: Path | None, as_json: bool) -> None:
    """Say why a round asked what it asked, draw it, and say why one item was or was not asked."""
    with open_campaign(folder, cell) as learner:
        if item is not None:
            found = why(learner, round_, item)
            print(json.dumps(asdict(found)) if as_json else found.text)
            return
        explained = explain(learner, round_)
        place = out or (learner.store.folder or folder) / f"explain-round-{round_}.svg"
        write_durably(place, svg(score_landscape(explained)).encode())
    if as_json:
        record = {
            "round": round_,
            "slope": explained.slope,
            "mean_slope": explained.mean_slope,
            "trained": explained.trained,
            "query": dict(zip(explained.items, explained.answers, strict=True)),
            "figure": str(place),
        }
        print(json.dumps(record))
        return
    console = Console()
    console.print(explained.sentence(), highlight=False)
    console.print(f"figure: {place}", highlight=False, soft_wrap=True)
