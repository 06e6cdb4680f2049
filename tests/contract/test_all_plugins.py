"""Every registered plug-in obeys the laws: one added later is tested without a line here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqnet.registry import INFORMATIVENESS, PURITY, STRATEGY
from mqnet.testing import SCORE_LAWS, STRATEGY_LAWS
from mqnet.testing.scores import ScoreCase
from mqnet.testing.strategies import StrategyCase

SCORES = [(registry, name) for registry in (PURITY, INFORMATIVENESS) for name in registry.names()]


@pytest.mark.parametrize("law", SCORE_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("registry", "name"), SCORES, ids=[f"{r.kind}-{n}" for r, n in SCORES])
def test_score(registry, name: str, law: Callable[[ScoreCase], None]) -> None:
    law(ScoreCase(registry.score(name)))


@pytest.mark.parametrize("law", STRATEGY_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", STRATEGY.names())
def test_strategy(name: str, law: Callable[[StrategyCase], None]) -> None:
    law(StrategyCase(lambda: STRATEGY.make(name), name, reference=STRATEGY.get(name).reference))


@pytest.mark.parametrize("registry", [PURITY, INFORMATIVENESS, STRATEGY], ids=lambda r: r.kind)
def test_every_plugin_says_what_it_is(registry) -> None:
    for name in registry.names():
        entry = registry.get(name)
        assert entry.summary.endswith("."), f"{registry.kind} '{name}' needs a docstring: one sentence"
        assert all(isinstance(option, str) for option in entry.options)
