"""Campaign configurations as JSON text and back."""

from __future__ import annotations

import json
from dataclasses import asdict

from mqnet.types import Budget, CampaignConfig, Costs, Plugin


def to_json(config: CampaignConfig) -> str:
    """The configuration as JSON with sorted keys: equal configurations give equal texts."""
    return json.dumps(asdict(config), sort_keys=True, ensure_ascii=False)


def from_json(text: str) -> CampaignConfig:
    """The configuration that `to_json` wrote."""
    raw = json.loads(text)
    return CampaignConfig(
        classes=tuple(raw["classes"]),
        budget=Budget(**raw["budget"]),
        costs=Costs(**raw["costs"]),
        rounds=raw["rounds"],
        strategy=Plugin(**raw["strategy"]),
        model=Plugin(**raw["model"]),
        seed=raw["seed"],
    )
