"""The laws of a score (DESIGN.md, law 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mqnet.registry import BoundScore
from mqnet.testing.scenes import ColumnMaker, Scene, every_tensor, make_scene, make_scenes, permute_rows

LEAST_AUROC = 0.7
"""Of telling apart what the scenes keep well apart: a reversed score has less than .5, chance has .5."""


@dataclass(frozen=True)
class ScoreCase:
    """A score under test: `oriented` is False for one whose direction the scenes cannot show."""

    score: BoundScore
    columns: Mapping[str, ColumnMaker] = field(default_factory=dict[str, ColumnMaker])
    oriented: bool = True

    def scene(self, *, dtype: torch.dtype = torch.float32, n_ood_answers: int = 8, pool_order: int = 0) -> Scene:
        """A scene with the columns that the score declares, no others."""
        scene = make_scene(dtype=dtype, n_ood_answers=n_ood_answers, pool_order=pool_order, extra=self.columns)
        return scene.with_columns(self.score.needs)

    def scenes(self) -> dict[str, Scene]:
        """All scenes, likewise."""
        return {name: scene.with_columns(self.score.needs) for name, scene in make_scenes(self.columns).items()}


def check_score(score: BoundScore, *, columns: Mapping[str, ColumnMaker] | None = None, oriented: bool = True) -> None:
    """Hold a purity or informativeness score to every law; one that is broken is an AssertionError or a PluginError."""
    case = ScoreCase(score, columns or {}, oriented)
    for law in SCORE_LAWS:
        law(case)


def finite_number_per_item(case: ScoreCase) -> None:
    """One finite floating-point number per item in every scene, free of gradients."""
    for name, scene in case.scenes().items():
        scores = case.score(scene.view)
        where = f"'{case.score.name}' in the scene '{name}'"
        require(
            scores.shape == (len(scene.view),), f"{where} returned {tuple(scores.shape)}; one number per item is meant"
        )
        require(scores.is_floating_point(), f"{where} returned {scores.dtype}; floating-point numbers are meant")
        require(bool(scores.isfinite().all()), f"{where} is not finite")
        require(not scores.requires_grad, f"{where} drags a gradient along: use no_grad")


def input_left_alone(case: ScoreCase) -> None:
    """No tensor of the view is changed."""
    for name, scene in case.scenes().items():
        before = {where: tensor.clone() for where, tensor in every_tensor(scene.view).items()}
        case.score(scene.view)
        require_same(before, every_tensor(scene.view), f"'{case.score.name}' in the scene '{name}'")


def nothing_but_the_key(case: ScoreCase) -> None:
    """The same view gives the same bits; torch's global random stream is neither read nor moved."""
    view = case.scene().view
    first = untouched_stream(lambda: case.score(view), 1, f"'{case.score.name}'")
    second = untouched_stream(lambda: case.score(view), 2, f"'{case.score.name}'")
    require(
        torch.equal(first, second), f"'{case.score.name}' differs from call to call: draw from view.key or view.uniform"
    )


def independent_of_pool_order(case: ScoreCase) -> None:
    """A pool in another order gives the same scores: nobody reads row numbers of the pool."""
    first, second = case.score(case.scene().view), case.score(case.scene(pool_order=1).view)
    require(torch.equal(first, second), f"'{case.score.name}' depends on the order of the pool")


def independent_of_row_order(case: ScoreCase) -> None:
    """Permuting the rows of the view permutes the scores."""
    for name in ("plain", "no OOD answers", "duplicates"):
        view = case.scenes()[name].view
        order = torch.randperm(len(view), generator=torch.Generator().manual_seed(3))
        straight, permuted = case.score(view), case.score(permute_rows(view, order))
        spread = float((straight - straight.mean()).abs().max()) + 1e-6
        apart = float((straight[order] - permuted).abs().max())
        # sums over the rows may round differently, no more
        require(apart <= 1e-3 * spread, f"'{case.score.name}' depends on the order of the rows in the scene '{name}'")


def right_orientation(case: ScoreCase) -> None:
    """Higher means ask first: known above junk for purity, ambiguous above clear for informativeness, in each type."""
    if not case.oriented:
        return
    is_purity = case.score.entry.kind == "purity"
    for dtype in (torch.float32, torch.float64, torch.float16):
        for n_ood_answers in (8, 0):
            scene = case.scene(dtype=dtype, n_ood_answers=n_ood_answers)
            scores = case.score(scene.view)
            known = scene.truth >= 0
            above, below = (known, ~known) if is_purity else (scene.ambiguous, known & ~scene.ambiguous)
            found = auroc(scores[above], scores[below])
            words = "known above junk" if is_purity else "ambiguous above clear"
            require(
                found >= LEAST_AUROC,
                f"'{case.score.name}' ranks {words} with AUROC {found:.2f} on {dtype} vectors with {n_ood_answers} "
                f"OOD answers; at least {LEAST_AUROC} is meant (HIGHER = ask first)",
            )


SCORE_LAWS: tuple[Callable[[ScoreCase], None], ...] = (
    finite_number_per_item,
    input_left_alone,
    nothing_but_the_key,
    independent_of_pool_order,
    independent_of_row_order,
    right_orientation,
)


def auroc(above: Tensor, below: Tensor) -> float:
    """The share of pairs in which `above` [n] is larger than `below` [m], ties counting half."""
    gap = above.double()[:, None] - below.double()[None, :]
    return float(((gap > 0).double() + 0.5 * (gap == 0).double()).mean())


def require(holds: bool, otherwise: str) -> None:
    """An assertion that `python -O` keeps."""
    if not holds:
        raise AssertionError(otherwise)


def require_same(before: Mapping[str, Tensor], after: Mapping[str, Tensor], who: str) -> None:
    """Two sets of named tensors must be the same bit for bit."""
    require(set(before) == set(after), f"{who}: {sorted(set(before) ^ set(after))} came or went")
    for where, tensor in before.items():
        same = tensor.dtype == after[where].dtype and torch.equal(tensor, after[where])
        require(same, f"{who} changed {where}")


def untouched_stream(call: Callable[[], Tensor], seed: int, who: str) -> Tensor:
    """What `call` returns with torch's global stream at `seed`; moving that stream is an error, and it is put back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        before = torch.random.get_rng_state()
        out = call()
        require(
            torch.equal(before, torch.random.get_rng_state()), f"{who} draws from torch's global stream: use its key"
        )
    return out
