"""`mqnet figures`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mqnet.errors import ConfigError, nearest_name
from mqnet.experiment.cells import grid
from mqnet.experiment.figures.kinds import CAPTIONS, Subject, draw, drawable
from mqnet.experiment.figures.sheet import FORMATS, Format, save
from mqnet.experiment.stored import stored_config, stored_results


def show(folder: Path, kinds: Sequence[str], form: str, out: Path | None, as_json: bool) -> None:
    """Draw the figures of these kinds, or all the run has something to show for, and name the files."""
    chosen = _format(form)
    subject = Subject(folder, grid(stored_config(folder)), stored_results(folder))
    place = out or folder / "figures"
    for kind in kinds or drawable(subject):
        path = place / f"{kind}.{chosen}"
        figure = draw(kind, subject)
        place.mkdir(parents=True, exist_ok=True)
        save(figure, path, chosen)
        record = {"kind": kind, "file": str(path), "caption": CAPTIONS[kind]}
        print(json.dumps(record) if as_json else path, flush=True)


def _format(name: str) -> Format:
    for known in FORMATS:
        if name == known:
            return known
    raise ConfigError(f"'{name}' is no format.{nearest_name(name, FORMATS)}")
