"""Submodular conditional mutual information for open-set active learning (SIMILAR, Kothawade et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mqnet.errors import ConfigError
from mqnet.models.head import HeadConfig, encode, fit_head
from mqnet.numerics.gradients import Factored, output_gradients
from mqnet.numerics.products import row_chunks
from mqnet.numerics.submodular_facility import facility_location_cmi
from mqnet.numerics.submodular_logdet import log_det_cmi
from mqnet.registry import strategy
from mqnet.rng import Key
from mqnet.strategies.base import Ranking, in_order
from mqnet.types import Selection
from mqnet.view import RoundView


@strategy("similar")
@dataclass
class Similar(Ranking):
    """Asks a diverse set close to the labelled known items and far from labelled junk (query and private set)."""

    objective: Literal["logdetcmi", "flcmi"] = "logdetcmi"
    sampled_items: int | None = None
    space: Literal["embedding", "features"] = "embedding"

    def __post_init__(self) -> None:
        if self.objective not in ("logdetcmi", "flcmi") or self.space not in ("embedding", "features"):
            raise ConfigError("similar: objective is 'logdetcmi' or 'flcmi', space is 'embedding' or 'features'.")
        self.needs = frozenset({self.space})

    def select(self, view: RoundView, n: int, key: Key) -> Selection:
        """The first n greedy picks on gradient embeddings of a (K+1)-output head, OOD being its last output.

        The head is trained here on `space`, since the target model has K outputs; pool items take their most likely
        label, labelled ones their own. Without OOD answers there are K outputs and the private set is empty.
        """
        known, answers = view.labelled.known, view.labelled.answers
        if not bool(known.any()):
            return in_order(torch.arange(min(n, len(view))))
        pool, labelled = view.column(self.space), view.labelled.column(self.space)
        n_outputs = view.n_classes + int(not bool(known.all()))
        labels = torch.where(known, answers, view.n_classes)
        head = fit_head(labelled, labels, n_outputs, HeadConfig(loss_prediction="off"), key.child("head").torch())

        def factors(rows: Tensor, true: Tensor | None) -> Factored:
            pieces = [encode(head, rows[piece]) for piece in row_chunks(len(rows), rows.shape[1])] or [
                encode(head, rows)
            ]
            logits, hidden = (torch.cat([p[name] for p in pieces]) for name in ("logits", "features"))
            return Factored(output_gradients(logits, true), hidden)

        query, private = factors(labelled[known], answers[known]), factors(labelled[~known], labels[~known])
        if self.objective == "logdetcmi":
            return in_order(log_det_cmi(factors(pool, None), query, private, n))
        generator = key.child("sample").torch() if self.sampled_items is not None else None
        return in_order(
            facility_location_cmi(
                factors(pool, None), query, private, n, sampled_items=self.sampled_items, generator=generator
            )
        )
