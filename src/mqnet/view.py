"""What a score or a strategy sees of a round: columns over the unlabelled items and over the labelled ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from torch import Tensor

from mqnet.errors import PluginError, nearest_name
from mqnet.ids import ItemIds
from mqnet.rng import Key
from mqnet.types import Costs

OOD_CLASS = -1
"""Stands for OOD wherever answers are class numbers."""


def _column(columns: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in columns:
        raise PluginError(f"the column '{name}' was not computed.{nearest_name(name, columns)} Declare it in `needs`.")
    return columns[name]


@dataclass(frozen=True)
class LabelledView:
    """The items bought so far (skipped ones are not among them), sorted by id, with their answers."""

    ids: ItemIds
    columns: Mapping[str, Tensor]
    answers: Tensor
    """[n] class numbers, `OOD_CLASS` for junk."""

    def column(self, name: str) -> Tensor:
        """A column by name; asking for one that was not declared in `needs` is an error."""
        return _column(self.columns, name)

    @property
    def known(self) -> Tensor:
        """[n] True where the answer is a known class."""
        return self.answers >= 0

    def __len__(self) -> int:
        return len(self.answers)


@dataclass(frozen=True)
class RoundView:
    """One round, read-only: row i of every column is item ids[i]; ids are sorted.

    Columns: `logits` [N,K], `features` [N,H], `embedding` [N,D], `contrastive` [N,C], `predicted_loss` [N] …
    as declared in `needs`. `truth` [N] is there for strategies registered as reference lines, in simulations only;
    `validation` holds independent labelled items for the ablation that learns from them instead of the query.
    """

    ids: ItemIds
    columns: Mapping[str, Tensor]
    labelled: LabelledView
    n_classes: int
    round: int = 1
    key: Key = field(default_factory=lambda: Key(0))
    costs: Costs = field(default_factory=Costs)
    truth: Tensor | None = None
    validation: LabelledView | None = None

    def __post_init__(self) -> None:
        for where, columns, n in (
            ("pool", self.columns, len(self.ids)),
            ("labelled", self.labelled.columns, len(self.labelled)),
        ):
            for name, column in columns.items():
                if len(column) != n:
                    raise PluginError(f"{where} column '{name}' has {len(column)} rows for {n} items.")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def column(self, name: str) -> Tensor:
        """A column by name; asking for one that was not declared in `needs` is an error."""
        return _column(self.columns, name)

    @property
    def n_ood(self) -> int:
        """How many labelled items were answered OOD so far."""
        return int((self.labelled.answers < 0).sum())

    def uniform(self, *purpose: str | int) -> Tensor:
        """[N] numbers in [0, 1), one per item, keyed by the item's id and the purpose."""
        return torch.from_numpy(self.key.child(*purpose).uniform(self.ids.hashes()))

    def __len__(self) -> int:
        return len(self.ids)
