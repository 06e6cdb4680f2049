"""Whether another round is worth its price, in a sentence."""

from __future__ import annotations

from mqnet.loop.audit_evidence import Estimate
from mqnet.loop.crossfit import Judgement

LITTLE = 0.01
"""A gain of accuracy that is not worth a round's mention: a point."""


def advice(judged: Judgement, left: Estimate) -> str:
    """What another round is expected to buy, and whether there are known items left to buy it with."""
    return f"{_gain(judged)} {_left(left)}".strip()


def _gain(judged: Judgement) -> str:
    gain = judged.gain
    if gain.value is None or gain.low is None or gain.high is None:
        return f"Too early to tell what another round buys: {gain.how}."
    span = f"95% interval {_points(gain.low)} to {_points(gain.high)}, from {gain.n} items drawn at random"
    what = (
        f"Another {judged.n_more} known labels are expected to change accuracy by {_points(gain.value)} points ({span})"
    )
    if gain.high < LITTLE:
        return f"{what}: little is left to gain."
    if gain.low > 0:
        return f"{what}: it pays to go on."
    return f"{what}: that is too few to tell whether it pays to go on."


def _left(left: Estimate) -> str:
    if left.value is None or left.low is None or left.high is None:
        return ""
    if left.high < 1:
        return "No known item is left in the pool."
    return f"About {left.value:,.0f} known items ({left.low:,.0f} to {left.high:,.0f}) are left in the pool."


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"
