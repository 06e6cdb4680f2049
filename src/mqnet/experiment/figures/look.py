"""How a strategy looks: the one place that gives it its colour, marker and line, the same in every figure.

Hues are Okabe and Ito's and Paul Tol's, which readers with colour-blindness can tell apart; markers differ too, so that
no line hangs on its colour alone (and none is lost in a grey print).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

COLUMN, PAGE = 3.3, 6.8
"""Widths in inches: one column of a paper, and both."""

FONT = 7.0
"""Points, at the figure's own size."""

KNOWN_COLOUR, OOD_COLOUR = "#0072B2", "#E69F00"


@dataclass(frozen=True)
class Look:
    """A strategy's colour, marker and line style; a hollow marker is filled with white."""

    colour: str
    marker: str
    line: str = "-"
    hollow: bool = False
    width: float = 1.1

    @property
    def face(self) -> str:
        """What fills the marker."""
        return "white" if self.hollow else self.colour


LOOKS = {
    "random": Look("#777777", "|", "--"),
    "oracle-purity": Look("#000000", "x", ":"),
    "mqnet": Look("#D55E00", "o", width=1.7),
    "mqnet, paper's form": Look("#882255", "o", hollow=True),
    "confidence": Look("#0072B2", "s"),
    "coreset": Look("#56B4E9", "D"),
    "ll": Look("#CC79A7", "^"),
    "badge": Look("#E69F00", "v"),
    "ccal": Look("#009E73", "P"),
    "similar": Look("#332288", "X"),
    "margin": Look("#117733", "<"),
    "entropy": Look("#AA4499", ">"),
    "sum": Look("#999933", "h"),
    "product": Look("#44AA99", "p"),
    # what the paper's ablations compare
    "CONF-ReAct": Look("#0072B2", "s", hollow=True),
    "CONF-CSI": Look("#44AA99", "D", hollow=True),
    "LL-ReAct": Look("#CC79A7", "^", hollow=True),
    "LL-CSI": Look("#999933", "v", hollow=True),
    "mqnet, random set": Look("#0072B2", "s", hollow=True),
    "mqnet, paper's form, random set": Look("#56B4E9", "D", hollow=True),
    "mqnet, no skyline": Look("#009E73", "P", hollow=True),
    "mqnet, paper's form, no skyline": Look("#44AA99", "X", hollow=True),
    "mqnet, no net": Look("#332288", "X", hollow=True),
    "P + I": Look("#999933", "h"),
    "P x I": Look("#44AA99", "p"),
    "P + I, LL-CSI": Look("#117733", "h", hollow=True),
    "P x I, LL-CSI": Look("#56B4E9", "p", hollow=True),
}

SPARE_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#332288", "#44AA99", "#882255", "#999933")
SPARE_MARKERS = ("d", "*", "H", "8", "1", "2", "3")


def look(strategy: str) -> Look:
    """How a strategy looks: fixed for those that ship and those of the paper, derived from the name for others."""
    if strategy in LOOKS:
        return LOOKS[strategy]
    number = zlib.crc32(strategy.encode())
    colour, marker = number % len(SPARE_COLOURS), number // len(SPARE_COLOURS) % len(SPARE_MARKERS)
    return Look(SPARE_COLOURS[colour], SPARE_MARKERS[marker], hollow=True)


def colour(strategy: str) -> str:
    """The colour of a strategy."""
    return look(strategy).colour
