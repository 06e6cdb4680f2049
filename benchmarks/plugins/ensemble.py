"""A plug-in for benchmarks/settings.toml: MQ-Net as the mean rank of several nets, each fitted to a bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mqnet.meta.fit import QuerySet
from mqnet.meta.inputs import MetaInput
from mqnet.meta.net import MetaNet
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.mqnet import MqNet
from mqnet.types import Arrays, Feedback

N_NETS = 5


class Ensemble(MetaNet):
    """The default's settings, several nets."""

    def __init__(self, like: MetaNet) -> None:
        super().__init__(like.settings, n_scores=like.n_scores, informativeness=like.informativeness, log_odds=True)
        self.members = [MetaNet(like.settings, n_scores=like.n_scores, log_odds=True, seed=i) for i in range(N_NETS)]

    def phi(self, inputs: MetaInput) -> Tensor:
        ranks = [member.phi(inputs).argsort(stable=True).argsort(stable=True).double() for member in self.members]
        return torch.stack(ranks).mean(dim=0)

    def learn(
        self,
        sets: Sequence[tuple[Tensor, QuerySet]],
        log_odds: Tensor,
        is_known: Tensor,
        generator: torch.Generator,
        *,
        any_ood: bool = False,
    ) -> None:
        for member in self.members:
            some: list[tuple[Tensor, QuerySet]] = []
            for raw, query in sets:
                rows = torch.randint(len(raw), (len(raw),), generator=generator) if len(raw) else torch.arange(0)
                some.append((raw[rows], QuerySet(query.z[rows], query.target[rows])))
            member.learn(some, log_odds, is_known, generator, any_ood=any_ood)

    def state(self) -> Arrays:
        return {f"{i}.{name}": t for i, member in enumerate(self.members) for name, t in member.state().items()}

    def restore(self, state: Arrays) -> None:
        for i, member in enumerate(self.members):
            start = f"{i}."
            member.restore({name.removeprefix(start): t for name, t in state.items() if name.startswith(start)})


@strategy("mqnet-ensemble")
@dataclass
class MqNetEnsemble(MqNet):
    """MQ-Net with five bootstrapped nets whose ranks are averaged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.meta = Ensemble(self.meta)

    def learn(self, feedback: Sequence[Feedback], key: Key) -> None:
        if feedback:
            super().learn(feedback, key)
