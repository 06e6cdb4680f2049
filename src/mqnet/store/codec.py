"""Campaign configurations as JSON text and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from mqnet.errors import ConfigError
from mqnet.types import Budget, CampaignConfig, Costs, Plugin

ADDED = ("audit_share", "initial", "class_vectors", "ranking_costs", "coder")
"""Fields of the configuration that campaigns begun with earlier versions lack: they have the defaults."""


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
    later = {name: raw[name] for name in ADDED if name in raw}
    return CampaignConfig(
        classes=tuple(raw["classes"]),
        budget=Budget(**raw["budget"]),
        costs=Costs(**raw["costs"]),
        rounds=raw["rounds"],
        strategy=Plugin(**raw["strategy"]),
        model=Plugin(**raw["model"]),
        seed=raw["seed"],
        **later,
    )


def costs_from(text: str | None) -> Costs | None:
    """A round's measured costs as they were stored, none where none were."""
    return None if text is None else Costs(**json.loads(text))
