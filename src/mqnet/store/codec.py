"""Campaign configurations as JSON text and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from mqnet.errors import ConfigError
from mqnet.types import Budget, CampaignConfig, Costs, Plugin


def to_json(config: CampaignConfig) -> str:
    """The configuration as JSON with sorted keys: equal configurations give equal texts."""
    return json.dumps(asdict(config), sort_keys=True, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):  # a numpy number among a plug-in's options
        return value.item()  # type: ignore[attr-defined]  # pyright: ignore
    raise ConfigError(f"the option value {value!r} cannot be stored: use numbers, texts and lists.")


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
