"""mqnet: open-set active learning.

Spend a labelling budget well on a pool of unlabelled data that contains junk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

# what loads torch is imported when first used: `import mqnet` and the command line's help stay quick
_LAZY = {
    "ActiveLearner": "mqnet.loop.learner",
    "advance": "mqnet.loop.advance",
    "ArrayPool": "mqnet.data.pools",
    "open_npy": "mqnet.data.pools",
    "open_parquet": "mqnet.data.pools",
    "SimulatedOracle": "mqnet.oracles.simulated",
    "NoisyOracle": "mqnet.oracles.simulated",
    "Truth": "mqnet.oracles.simulated",
    "simulate": "mqnet.experiment.simulate",
    "QueryStrategy": "mqnet.loop.query_strategy",
    "MetaNet": "mqnet.meta.net",
    "Key": "mqnet.rng",
    "OOD": "mqnet.types",
    "SKIP": "mqnet.types",
    "Known": "mqnet.types",
    "Query": "mqnet.types",
    "MqnetError": "mqnet.errors",
}

if TYPE_CHECKING:
    from mqnet.data.pools import ArrayPool, open_npy, open_parquet
    from mqnet.errors import MqnetError
    from mqnet.experiment.simulate import simulate
    from mqnet.loop.advance import advance
    from mqnet.loop.learner import ActiveLearner
    from mqnet.loop.query_strategy import QueryStrategy
    from mqnet.meta.net import MetaNet
    from mqnet.oracles.simulated import NoisyOracle, SimulatedOracle, Truth
    from mqnet.rng import Key
    from mqnet.types import OOD, SKIP, Known, Query

__all__ = [
    "OOD",
    "SKIP",
    "ActiveLearner",
    "ArrayPool",
    "Key",
    "Known",
    "MetaNet",
    "MqnetError",
    "NoisyOracle",
    "Query",
    "QueryStrategy",
    "SimulatedOracle",
    "Truth",
    "__version__",
    "advance",
    "open_npy",
    "open_parquet",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'mqnet' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
