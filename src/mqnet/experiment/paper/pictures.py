"""The figures of an entry, as files beside its page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from mqnet.errors import InputError
from mqnet.experiment.figures.kinds import CAPTIONS, Subject, draw
from mqnet.experiment.figures.sheet import save
from mqnet.experiment.paper.press import Press
from mqnet.experiment.results import Results


@dataclass(frozen=True)
class Picture:
    """A file, as the page beside its folder names it, and what its caption says."""

    file: str
    caption: str


def draw_all(press: Press, results: Results) -> list[Picture]:
    """Draw the entry's figures as PNG; one that has nothing to show yet is left out."""
    subject = Subject(press.out, press.cells(), results)
    out: list[Picture] = []
    for kind in press.scaled.entry.figures:
        try:
            parts = _parts(kind, subject)
        except InputError:  # no campaign of mqnet has finished, say: the page says how many have
            continue
        for more, figure in parts:
            name = f"{kind}{'-' + _slug(more) if more else ''}.png"
            save(figure, press.place / name, "png")
            out.append(Picture(f"{press.place.name}/{name}", f"{more}: {CAPTIONS[kind]}" if more else CAPTIONS[kind]))
    return out


def _parts(kind: str, subject: Subject) -> list[tuple[str, Figure]]:
    """A landscape shows one form of mqnet: the others get a figure of their own."""
    labels = list(dict.fromkeys(cell.strategy_label for cell in subject.cells))
    if kind != "landscape" or len(labels) < 2:
        return [("", draw(kind, subject))]
    by_label = {label: [cell for cell in subject.cells if cell.strategy_label == label] for label in labels}
    return [(label, draw(kind, replace(subject, cells=cells))) for label, cells in by_label.items()]


def _slug(text: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in text.replace("'", "")).split()
    return "-".join(words)


def remove_old(place: Path) -> None:
    """Drop the figures of an earlier press: what is no longer drawn must not stand beside the new page."""
    for path in place.glob("*.png"):
        path.unlink()
