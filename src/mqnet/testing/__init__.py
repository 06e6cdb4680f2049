"""Contract suites: the laws every score and strategy must obey, to run on your own.

    from mqnet.registry import PURITY, STRATEGY
    from mqnet.testing import check_score, check_strategy

    def test_my_score() -> None:
        check_score(PURITY.score("mine"))

    def test_my_strategy() -> None:
        check_strategy(lambda: STRATEGY.make("mine"))

A broken law raises an AssertionError (or the PluginError that the loop would raise) that says which and where. No test
framework is needed. `SCORE_LAWS` and `STRATEGY_LAWS` hold the laws one by one, to run each as a test of its own.
"""

from mqnet.testing.scenes import Scene, make_scene, make_scenes
from mqnet.testing.scores import SCORE_LAWS, check_score
from mqnet.testing.strategies import STRATEGY_LAWS, check_strategy

__all__ = ["SCORE_LAWS", "STRATEGY_LAWS", "Scene", "check_score", "check_strategy", "make_scene", "make_scenes"]
