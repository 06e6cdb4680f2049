"""Made-up rounds with a known answer: what scores and strategies are tested on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mqnet.ids import ItemIds
from mqnet.rng import Key
from mqnet.view import OOD_CLASS, LabelledView, RoundView

DIM = 8
RADIUS = 4.0
NOISE = 0.3

ColumnMaker = Callable[[Tensor], Tensor]
"""Makes a column [N, …] from embeddings [N, DIM]: how a plug-in's author adds a column that these scenes lack."""


@dataclass(frozen=True)
class Scene:
    """A round, and what its unlabelled items really are.

    Known class c lies around `RADIUS` times the c-th unit vector, junk around unit vectors of no class, ambiguous items
    half-way between two classes: a reasonable purity tells known from junk, an informativeness ambiguous from clear.
    """

    view: RoundView
    truth: Tensor
    """[N] class numbers, -1 for junk."""
    ambiguous: Tensor
    """[N] True for items between two classes."""

    def with_truth(self) -> Scene:
        """The same scene as a reference line sees it."""
        return replace(self, view=replace(self.view, truth=self.truth))

    def with_columns(self, names: frozenset[str]) -> Scene:
        """The same scene with these columns only; one that the scenes do not have is an error."""
        if missing := sorted(names - set(self.view.columns)):
            raise AssertionError(
                f"the scenes have no column '{missing[0]}'. Pass columns={{'{missing[0]}': a function of the vectors}}."
            )
        labelled = self.view.labelled
        kept = replace(labelled, columns={name: labelled.columns[name] for name in names})
        return replace(
            self,
            view=replace(self.view, columns={name: self.view.columns[name] for name in names}, labelled=kept),
        )


def make_scene(
    *,
    n_classes: int = 3,
    n_clear: int = 36,
    n_ambiguous: int = 12,
    n_ood: int = 24,
    n_known_answers: int = 24,
    n_ood_answers: int = 8,
    copies: int = 1,
    constant: bool = False,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
    pool_order: int = 0,
    extra: Mapping[str, ColumnMaker] | None = None,
) -> Scene:
    """A scene of `n_clear + n_ambiguous + n_ood` unlabelled items, each `copies` times, beside the answered ones.

    `constant` makes all items alike; `dtype` is that of the vectors, and of the model's columns unless it is float16;
    `pool_order` shuffles the pool behind the view, which nobody may notice.
    """
    generator = torch.Generator().manual_seed(0)
    n_ambiguous = n_ambiguous if n_classes > 1 else 0
    labels = torch.cat(
        [
            torch.arange(n_clear + n_ambiguous) % n_classes,
            torch.full((n_ood,), OOD_CLASS),
            torch.arange(n_known_answers) % n_classes,
            torch.full((n_ood_answers,), OOD_CLASS),
        ]
    )
    n_open = n_clear + n_ambiguous + n_ood
    ambiguous = torch.zeros(len(labels), dtype=torch.bool)
    ambiguous[n_clear : n_clear + n_ambiguous] = True
    vectors = _vectors(labels, ambiguous, n_classes, generator) * scale
    if constant:
        vectors = vectors[:1].repeat(len(vectors), 1) if len(vectors) else vectors
    is_open = torch.arange(len(labels)) < n_open
    if copies > 1:
        vectors, labels, ambiguous, is_open = (
            t.repeat(copies, *[1] * (t.dim() - 1)) for t in (vectors, labels, ambiguous, is_open)
        )

    n = len(labels)
    names = [f"item {number:04d}" for number in torch.randperm(n, generator=generator).tolist()]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(pool_order))
    pool = ItemIds.of([names[row] for row in order.tolist()])
    row_of = {name: row for row, name in enumerate(names)}

    def part(wanted: Tensor) -> tuple[ItemIds, Tensor]:
        ids = pool.select([names[row] for row in wanted.nonzero().squeeze(1).tolist()]).sorted()
        return ids, torch.tensor([row_of[name] for name in ids], dtype=torch.long)

    ids, rows = part(is_open)
    bought, bought_rows = part(~is_open)
    makers = {**_makers(n_classes), **(extra or {})}

    def columns(vectors: Tensor) -> dict[str, Tensor]:
        given = vectors.to(dtype)
        out = dict.fromkeys(("embedding", "contrastive", "contrastive_semantic"), given)
        exact = given.double() if dtype == torch.float64 else given.float()
        return out | {name: maker(exact) for name, maker in makers.items()}

    view = RoundView(
        ids=ids,
        columns=columns(vectors[rows]),
        labelled=LabelledView(bought, columns(vectors[bought_rows]), labels[bought_rows]),
        n_classes=n_classes,
        round=2,
        key=Key(0).child("scene"),
    )
    return Scene(view, labels[rows], ambiguous[rows])


def make_scenes(extra: Mapping[str, ColumnMaker] | None = None) -> dict[str, Scene]:
    """The rounds every plug-in must survive, by name."""
    return {
        "plain": make_scene(extra=extra),
        "no OOD answers": make_scene(n_ood_answers=0, extra=extra),
        "no known answers": make_scene(n_known_answers=0, extra=extra),
        "no answers": make_scene(n_known_answers=0, n_ood_answers=0, extra=extra),
        "one answer": make_scene(n_known_answers=1, n_ood_answers=0, extra=extra),
        "one class": make_scene(n_classes=1, extra=extra),
        "no junk": make_scene(n_ood=0, n_ood_answers=0, extra=extra),
        "only junk": make_scene(n_clear=0, n_ambiguous=0, extra=extra),
        "constant columns": make_scene(constant=True, extra=extra),
        "zero vectors": make_scene(scale=0.0, extra=extra),
        "large values": make_scene(scale=100.0, extra=extra),
        "small values": make_scene(scale=1e-3, extra=extra),
        "float16 vectors": make_scene(dtype=torch.float16, extra=extra),
        "float64": make_scene(dtype=torch.float64, extra=extra),
        "duplicates": make_scene(copies=2, extra=extra),
        "one item": make_scene(n_clear=1, n_ambiguous=0, n_ood=0, extra=extra),
        "two items": make_scene(n_clear=1, n_ambiguous=0, n_ood=1, extra=extra),
    }


def permute_rows(view: RoundView, order: Tensor) -> RoundView:
    """The view with its rows in another order; the labelled items stay sorted, a score may train on them in turn."""
    columns = {name: column[order] for name, column in view.columns.items()}
    return replace(view, ids=view.ids.take(order.numpy()), columns=columns)


def every_tensor(view: RoundView) -> dict[str, Tensor]:
    """All tensors of a view by where they stand: to see whether one was changed."""
    out = {f"column '{name}'": column for name, column in view.columns.items()}
    out |= {f"labelled column '{name}'": column for name, column in view.labelled.columns.items()}
    out["the answers"] = view.labelled.answers
    if view.truth is not None:
        out["the truth"] = view.truth
    return out


def _vectors(labels: Tensor, ambiguous: Tensor, n_classes: int, generator: torch.Generator) -> Tensor:
    n_strange = DIM - n_classes
    axis = torch.where(labels >= 0, labels, n_classes + torch.arange(len(labels)) % n_strange)
    units = torch.eye(DIM)
    centre = units[axis]
    between = (centre + units[(axis + 1) % n_classes]) / 2**0.5
    noise = torch.randn(len(labels), DIM, generator=generator) * NOISE
    return RADIUS * torch.where(ambiguous[:, None], between, centre) + noise


def _makers(n_classes: int) -> dict[str, ColumnMaker]:
    """A model that knows the classes' directions: its columns are functions of the vectors, linear on top of a ReLU."""

    def logits(vectors: Tensor) -> Tensor:
        return RADIUS * vectors.relu()[:, :n_classes]

    def predicted_loss(vectors: Tensor) -> Tensor:
        return 1.0 - logits(vectors).softmax(dim=1).amax(dim=1)

    def mc_logits(vectors: Tensor) -> Tensor:
        # dropout as a shift of all items alike: it changes the mind about ambiguous items only
        shifts = torch.randn(10, n_classes, generator=torch.Generator().manual_seed(1)) * 2.0
        return logits(vectors)[:, None, :] + shifts.to(vectors.dtype)

    return {
        "logits": logits,
        "features": torch.relu,
        "predicted_loss": predicted_loss,
        "mc_logits": mc_logits,
        "odin_logits": lambda vectors: logits(vectors) / 1000.0,
        "react_logits": lambda vectors: logits(vectors.clamp_max(RADIUS)),
    }
