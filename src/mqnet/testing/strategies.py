"""The laws of a strategy (DESIGN.md, law 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from mqnet.loop.rounds import check_selection, feedback_from, pack_snapshot
from mqnet.rng import Key
from mqnet.store.blobs import MemoryBlobs
from mqnet.strategies.base import Strategy
from mqnet.testing.scenes import ColumnMaker, Scene, every_tensor, make_scene, make_scenes
from mqnet.testing.scores import require, require_same, untouched_stream
from mqnet.types import OOD, SKIP, Answer, Arrays, Feedback, Known, LedgerLine, Selection
from mqnet.view import RoundView

KEY = Key(5).child("contract")


@dataclass(frozen=True)
class StrategyCase:
    """A strategy under test: `make` builds a fresh one; a reference line is shown the truth."""

    make: Callable[[], Strategy]
    name: str = "strategy"
    columns: Mapping[str, ColumnMaker] = field(default_factory=dict[str, ColumnMaker])
    reference: bool = False

    def scene(self, *, pool_order: int = 0) -> Scene:
        """A scene with the columns that the loop would compute, no others."""
        return self._shown(make_scene(pool_order=pool_order, extra=self.columns))

    def scenes(self) -> dict[str, Scene]:
        """All scenes, likewise."""
        return {name: self._shown(scene) for name, scene in make_scenes(self.columns).items()}

    def _shown(self, scene: Scene) -> Scene:
        scene = scene.with_columns(frozenset(self.make().needs) | {"logits"})
        return scene.with_truth() if self.reference else scene

    def select(self, view: RoundView, n: int, strategy: Strategy | None = None) -> Selection:
        """A checked ranking, by a fresh strategy unless one is given."""
        selection = (strategy or self.make()).select(view, n, KEY)
        check_selection(selection, view, n, self.name)
        return selection


def check_strategy(
    make: Callable[[], Strategy],
    *,
    name: str = "strategy",
    columns: Mapping[str, ColumnMaker] | None = None,
    reference: bool = False,
) -> None:
    """Hold a strategy to every law; the first one broken is an AssertionError or a PluginError."""
    case = StrategyCase(make, name, columns or {}, reference)
    for law in STRATEGY_LAWS:
        law(case)


def distinct_rows(case: StrategyCase) -> None:
    """min(n, N) distinct rows with finite scores in every scene, for n = 0, n = N and n > N too."""
    for name, scene in case.scenes().items():
        for n in (0, 1, len(scene.view), len(scene.view) + 3):
            selection = case.select(scene.view, n)
            where = f"'{case.name}' in the scene '{name}'"
            require(selection.rows.dtype == torch.long, f"{where} returned rows of {selection.rows.dtype}, not int64")
            for what in ("purity", "informativeness"):
                scores: Tensor | None = getattr(selection, what)
                good = scores is None or (scores.shape == (len(scene.view),) and bool(scores.isfinite().all()))
                require(good, f"{where}: its {what} is not one finite number per row of the view")


def prefix_of_longer(case: StrategyCase) -> None:
    """A shorter ranking is the beginning of a longer one, and so are its scores and snapshot."""
    for name in ("plain", "no OOD answers", "constant columns", "duplicates"):
        view = case.scenes()[name].view
        longest = case.select(view, len(view))
        for n in (1, 2, 7, len(view) // 2, len(view) - 1):
            short, where = case.select(view, n), f"'{case.name}' in the scene '{name}'"
            require(torch.equal(short.rows, longest.rows[:n]), f"{where}: select({n}) is no prefix of select(N)")
            for what, column in {"scores": short.scores, **short.snapshot}.items():
                whole = longest.scores if what == "scores" else longest.snapshot[what]
                same = torch.allclose(column.double(), whole[:n].double(), rtol=1e-4, atol=1e-6)
                require(same, f"{where}: '{what}' of an item depends on how many were asked for")


def input_left_alone(case: StrategyCase) -> None:
    """No tensor of the view is changed."""
    for name, scene in case.scenes().items():
        before = {where: tensor.clone() for where, tensor in every_tensor(scene.view).items()}
        case.select(scene.view, 10)
        require_same(before, every_tensor(scene.view), f"'{case.name}' in the scene '{name}'")


def nothing_but_the_key(case: StrategyCase) -> None:
    """The same view and key give the same ranking, whoever ran before; selecting changes nothing that is remembered."""
    view = case.scene().view
    strategy = case.make()
    before = _copy(strategy.state())

    def scores(seed: int) -> tuple[Tensor, Tensor]:
        kept: list[Selection] = []

        def call() -> Tensor:
            kept.append(case.select(view, 20, strategy))
            return kept[0].rows

        return untouched_stream(call, seed, f"'{case.name}'"), kept[0].scores

    (first, first_scores), (second, second_scores) = scores(1), scores(2)
    same = torch.equal(first, second) and torch.equal(first_scores, second_scores)
    require(same, f"'{case.name}' ranks differently from call to call: draw from the key alone")
    require_same(before, strategy.state(), f"select of '{case.name}'")


def independent_of_pool_order(case: StrategyCase) -> None:
    """A pool in another order gives the same ranking of the same items."""
    one, other = case.scene().view, case.scene(pool_order=1).view
    first, second = case.select(one, 20), case.select(other, 20)
    items = [list(view.ids.take(s.rows.numpy())) for view, s in ((one, first), (other, second))]
    require(items[0] == items[1], f"'{case.name}' depends on the order of the pool")


def survives_any_feedback(case: StrategyCase) -> None:
    """Learning from nothing, from skips alone, from junk alone, from known items alone: it still ranks."""
    scene = case.scene()
    for name, answer in {"skips": SKIP, "junk": OOD, "one class": Known("0")}.items():
        strategy = case.make()
        given = _feedback(case, strategy, scene, 1, answer)
        before = {where: tensor.clone() for where, tensor in given.snapshot.items()}
        strategy.learn([], KEY.child("nothing"))
        strategy.learn([given], KEY.child("learn"))
        require_same(before, given.snapshot, f"learning of '{case.name}'")
        for where, tensor in strategy.state().items():
            finite = not tensor.is_floating_point() or bool(tensor.isfinite().all())
            require(finite, f"'{case.name}' remembers a '{where}' that is not finite after {name} alone")
        for other in case.scenes().values():
            case.select(other.view, 10, strategy)


def state_is_everything(case: StrategyCase) -> None:
    """A strategy restored from its stored state ranks, and goes on learning, bit for bit as the one it came from."""
    scene, original = case.scene(), case.make()
    history: list[Feedback] = []
    for round_ in (1, 2):
        history.append(_feedback(case, original, scene, round_))
        original.learn(history, KEY.child("learn", round_))
    again = case.make()
    for round_ in (1, 2):
        again.learn(history[:round_], KEY.child("learn", round_))
    require_same(original.state(), again.state(), f"learning of '{case.name}', the same answers again,")

    restored = case.make()
    restored.restore(_stored(original.state()))
    for round_ in (3, 4):
        require_same(original.state(), restored.state(), f"storing '{case.name}'")
        one, other = (case.select(scene.view, 20, strategy) for strategy in (original, restored))
        same = torch.equal(one.rows, other.rows) and torch.equal(one.scores, other.scores)
        require(same, f"'{case.name}' ranks differently once it was stored and restored")
        history.append(_feedback(case, original, scene, round_))
        for strategy in (original, restored):
            strategy.learn(history, KEY.child("learn", round_))


STRATEGY_LAWS: tuple[Callable[[StrategyCase], None], ...] = (
    distinct_rows,
    prefix_of_longer,
    input_left_alone,
    nothing_but_the_key,
    independent_of_pool_order,
    survives_any_feedback,
    state_is_everything,
)


def _feedback(
    case: StrategyCase, strategy: Strategy, scene: Scene, round_: int, answer: Answer | None = None
) -> Feedback:
    """What the strategy's 16 best items teach, answered truly or all alike, as the loop stores it and reads it back."""
    selection = case.select(scene.view, 16, strategy)
    classes = tuple(str(number) for number in range(scene.view.n_classes))
    labels = scene.truth[selection.rows].tolist()
    answers: Sequence[Answer] = [answer or (Known(classes[label]) if label >= 0 else OOD) for label in labels]
    items = scene.view.ids.take(selection.rows.numpy())
    lines = [
        LedgerLine(round_, i, item, given, 1.0) for i, (item, given) in enumerate(zip(items, answers, strict=True))
    ]
    blobs = MemoryBlobs()
    return feedback_from(round_, blobs.get(blobs.put(pack_snapshot(selection))), lines, classes)


def _stored(state: Arrays) -> Arrays:
    blobs = MemoryBlobs()
    digest = blobs.put({name: tensor.detach().numpy() for name, tensor in state.items()})
    return {name: torch.from_numpy(np.array(array)) for name, array in blobs.get(digest).items()}


def _copy(state: Arrays) -> Arrays:
    return {name: tensor.clone() for name, tensor in state.items()}
