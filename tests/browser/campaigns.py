"""A campaign in its middle, with everything the dashboard can show."""

from __future__ import annotations

import math
import random
from typing import Any

from driving import NONE, known, pictures
from fake_api import FakeCampaign, Vote


def estimate(value: float, low: float, high: float, n: int, how: str) -> dict[str, Any]:
    """A value with its interval, and how it was found."""
    return {"value": value, "low": low, "high": high, "n": n, "how": how}


def unknown(how: str) -> dict[str, Any]:
    """An estimate that is not there yet."""
    return {"value": None, "low": None, "high": None, "n": 0, "how": how}


def insight(items: list[str]) -> dict[str, Any]:
    """What the loop found out in its last round."""
    draw = random.Random(0)
    informativeness = [max(-4.0, min(4.0, draw.gauss(0, 1))) for _ in range(300)]
    purity = [max(-4.0, min(4.0, 0.7 * draw.gauss(0, 1) - 0.4 * i)) for i in informativeness]
    asked = sorted(range(300), key=lambda i: -1.2 * purity[i] - 0.5 * informativeness[i])[:40]
    axis = [i / 2 for i in range(-8, 9)]
    return {
        "round": 4,
        "accuracy": estimate(0.871, 0.79, 0.93, 34, "On 34 audited items of known classes."),
        "ood_share": estimate(0.42, 0.31, 0.54, 58, "Of 58 items drawn uniformly."),
        "known_left": estimate(1204.0, 960.0, 1430.0, 58, "The audit's share of what is left."),
        "saved": estimate(46.0, 21.0, 68.0, 58, "What random labelling would have spent on junk, less what was.")
        | {"wasted": 38.0, "random": 84.0},
        "stopping": {
            "text": "Another round of 50 labels is expected to buy 1.2 points of accuracy.",
            "gain": estimate(0.012, -0.004, 0.028, 34, "By the last three rounds' accuracies."),
        },
        "landscape": {
            "informativeness": informativeness,
            "purity": purity,
            "asked": asked,
            "answers": ["skip" if i % 13 == 5 else "ood" if i % 4 == 0 else "known" for i in range(40)],
            "slope": -0.42,
            "grid": {"x": axis, "y": axis, "z": [[math.tanh(1.2 * y + 0.5 * x) for x in axis] for y in axis]},
        },
        "most_wanted": [{"item": item, "reason": "the model hesitates", "score": 1.0} for item in items[:8]],
        "least_wanted": [{"item": item, "reason": "unlike anything known", "score": 0.0} for item in items[8:16]],
    }


def in_the_middle(**settings: Any) -> FakeCampaign:
    """A campaign of two people with five rounds behind it, a disagreement and a flag."""
    campaign = FakeCampaign(
        pictures(40), ["cat", "dog"], 10, 400, users={"ada": "owner", "grace": "annotator"}, **settings
    )
    items = list(campaign.items)
    campaign.insight = insight(items)
    counts = [(28, 22, 1), (35, 15, 0), (41, 9, 2), (44, 6, 1), (20, 3, 0)]
    campaign.dashboard = {
        "rounds": [
            {"round": i, "n_known": k, "n_ood": o, "n_skipped": s, "spent": k + o, "budget": 50}
            for i, (k, o, s) in enumerate(counts)
        ],
        "class_counts": {"cat": 91, "dog": 77},
        "annotators": [
            {"name": "ada", "n": 140, "median_seconds": 1.9, "agreement": 0.93, "reliability": 0.95},
            {"name": "grace", "n": 83, "median_seconds": None, "agreement": None, "reliability": None},
        ],
        "seconds": {
            "known": {"median": 2.1, "n": 168}, "ood": {"median": 1.4, "n": 55}, "skip": {"median": None, "n": 0},
            "by_view": {"focus": {"median": 2.4, "n": 120}, "grid": {"median": 0.9, "n": 103}},
        },
        "agreement": 0.93, "n_disagreements": 1, "n_flags": 1,
    }  # fmt: skip
    votes = [(items[0], known("cat"), known("dog")), (items[1], NONE, known("dog"))]
    for item, *given in votes:
        for user, answer in zip(("ada", "grace"), given, strict=True):
            campaign.votes.append(Vote(item, answer, user, 0, f"{item}{user}", 2.0, "focus"))
        campaign.flags[item, "grace"] = "half a cat?" if item == items[0] else ""
    return campaign


def at_the_beginning() -> FakeCampaign:
    """A campaign nobody has answered in."""
    nothing = {
        "rounds": [], "class_counts": {}, "annotators": [], "seconds": {"by_view": {}}, "agreement": None,
        "n_disagreements": 0, "n_flags": 0,
    }  # fmt: skip
    return FakeCampaign(pictures(4), ["cat"], dashboard=nothing)
