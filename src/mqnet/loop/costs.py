"""placeholder"""

from __future__ import annotations
from mqnet.store.campaign import CampaignStore
from mqnet.types import CampaignConfig, Costs


def measured_costs(store: CampaignStore, config: CampaignConfig) -> Costs | None:
    return None
