"""The demo: a small, complete comparison that runs offline in under a minute."""

from __future__ import annotations

from mqnet.experiment.config import CampaignSection, ExperimentConfig, GridSection, ScenarioSection


def demo_config() -> ExperimentConfig:
    """Digits, 4 of 10 classes known, 40% OOD, the default strategy against random, confidence and the oracle."""
    return ExperimentConfig(
        scenario=ScenarioSection(kind="split", dataset="digits", name="digits", known_classes=4, ood_share=(0.4,)),
        campaign=CampaignSection(rounds=8, budget=20),
        grid=GridSection(strategies=("mqnet", "random", "confidence", "oracle-purity"), seeds=(0, 1, 2, 3, 4)),
    )
