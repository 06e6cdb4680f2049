"""Broken plug-ins, one for each way to break a law: the suite must name it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import Tensor

from mqnet.errors import PluginError
from mqnet.informativeness.confidence import confidence
from mqnet.numerics.ranking import top_n
from mqnet.purity.knn import knn
from mqnet.registry import BoundScore, Entry
from mqnet.strategies.base import Ranking
from mqnet.testing import check_score, check_strategy
from mqnet.types import Selection

NEEDS = frozenset({"embedding", "logits"})


def purity_score(function, kind: str = "purity") -> BoundScore:
    return BoundScore(Entry(kind, function.__name__, function, NEEDS))


def test_the_sound_ones_pass() -> None:
    check_score(purity_score(knn))
    check_score(purity_score(confidence, "informativeness"))


def nan_on_constant_columns(view) -> Tensor:
    scores = knn(view)
    return (scores - scores.mean()) / scores.std()


def two_columns(view) -> Tensor:
    return torch.stack([knn(view)] * 2, dim=1)


def integers(view) -> Tensor:
    return (knn(view) * 1000).long()


def reads_the_row_number(view) -> Tensor:
    return knn(view) + 0.1 * torch.arange(len(view))


def reads_the_pool_row(view) -> Tensor:
    return knn(view) + 0.1 * torch.from_numpy(view.ids.rows)


def changes_its_input(view) -> Tensor:
    view.column("embedding").sub_(view.column("embedding").mean(0))
    return knn(view)


def changes_the_answers(view) -> Tensor:
    view.labelled.answers.clamp_(min=0)
    return knn(view)


def reversed_sign(view) -> Tensor:
    return -knn(view)


def draws_globally(view) -> Tensor:
    return knn(view) + 1e-3 * torch.rand(len(view))


def draws_by_row(view) -> Tensor:
    return knn(view) + torch.rand(len(view), generator=view.key.torch())


def keeps_a_gradient(view) -> Tensor:
    return knn(view).requires_grad_()


def undeclared_column(view) -> Tensor:
    return view.column("features").sum(dim=1)


def wrong_without_known_answers(view) -> Tensor:
    known = view.labelled.column("embedding")[view.labelled.known]
    return -torch.cdist(view.column("embedding").float(), known.float()).amin(dim=1)


def overflows_in_half_precision(view) -> Tensor:
    return -((100 * view.column("embedding")) ** 2).sum(dim=1) + 0 * knn(view)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (nan_on_constant_columns, "is nan"),
        (two_columns, "expected one number per item"),
        (integers, "floating-point"),
        (reads_the_row_number, "order of the rows"),
        (reads_the_pool_row, "order of the pool"),
        (changes_its_input, "changed column 'embedding'"),
        (changes_the_answers, "changed the answers"),
        (reversed_sign, "known above junk"),
        (draws_globally, "global stream"),
        (draws_by_row, "order of the rows"),
        (keeps_a_gradient, "gradient"),
        (undeclared_column, "Declare it in `needs`"),
        (overflows_in_half_precision, "is -inf"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_score_is_named(score, message: str) -> None:
    with pytest.raises((AssertionError, PluginError), match=message) as caught:
        check_score(purity_score(score))
    if caught.type is AssertionError:
        assert score.__name__ in str(caught.value)


def test_a_score_that_needs_known_answers_is_caught() -> None:
    with pytest.raises((IndexError, RuntimeError)):
        check_score(purity_score(wrong_without_known_answers))


def test_reversed_informativeness_is_caught() -> None:
    def certain(view) -> Tensor:
        return -confidence(view)

    with pytest.raises(AssertionError, match="ambiguous above clear"):
        check_score(purity_score(certain, "informativeness"))
    check_score(purity_score(certain, "informativeness"), oriented=False)


def test_a_column_the_scenes_lack_is_named_and_can_be_given() -> None:
    def norm(view) -> Tensor:
        return view.column("size")

    score = BoundScore(Entry("purity", "norm", norm, frozenset({"size"})))
    with pytest.raises(AssertionError, match="no column 'size'"):
        check_score(score)
    check_score(score, columns={"size": lambda vectors: vectors[:, :3].amax(dim=1)})


class Sound(Ranking):
    needs = frozenset({"logits"})

    def score(self, view, key) -> Tensor:
        return confidence(view)


class NotAPrefix(Sound):
    def select(self, view, n, key) -> Selection:
        found = super().select(view, n, key)
        return replace(found, rows=found.rows.flip(0), scores=found.scores.flip(0))


class RepeatsRows(Sound):
    def select(self, view, n, key) -> Selection:
        found = super().select(view, n, key)
        return replace(found, rows=found.rows.clamp(max=len(view) // 2))


class TooFew(Sound):
    def select(self, view, n, key) -> Selection:
        return super().select(view, n - 1, key)


class BreaksOnMoreThanThereAre(Sound):
    def select(self, view, n, key) -> Selection:
        rows = torch.topk(confidence(view), n).indices
        return Selection(rows, confidence(view)[rows])


class NanScores(Sound):
    def score(self, view, key) -> Tensor:
        scores = confidence(view)
        return scores / scores.amax()


class DrawsGlobally(Sound):
    def score(self, view, key) -> Tensor:
        return torch.rand(len(view))


class ReadsPoolRows(Sound):
    def score(self, view, key) -> Tensor:
        return -torch.from_numpy(view.ids.rows).double()


class ChangesLogits(Sound):
    def score(self, view, key) -> Tensor:
        return view.column("logits").neg_().amax(dim=1)


class SnapshotOfAllRows(Sound):
    def select(self, view, n, key) -> Selection:
        return replace(super().select(view, n, key), snapshot={"logits": view.column("logits")})


class SnapshotDependsOnN(Sound):
    def select(self, view, n, key) -> Selection:
        found = super().select(view, n, key)
        return replace(found, snapshot={"rank": torch.arange(len(found.rows)) / max(1, n)})


class PurityOfSelectedOnly(Sound):
    def select(self, view, n, key) -> Selection:
        found = super().select(view, n, key)
        return replace(found, purity=found.scores)


@dataclass
class Learner(Sound):
    weight: Tensor = field(default_factory=lambda: torch.zeros(()))

    def score(self, view, key) -> Tensor:
        return confidence(view) + self.weight * torch.from_numpy(view.ids.hashes() % 97 / 97.0).float()

    def select(self, view, n, key) -> Selection:
        scores = self.score(view, key)
        rows = top_n(scores, n)
        return Selection(rows, scores[rows], {"logits": view.column("logits")[rows]})

    def learn(self, feedback, key) -> None:
        if feedback and len(feedback[-1].answers):
            self.weight = self.weight + feedback[-1].answers.float().mean() + 1.5

    def state(self):
        return {"weight": self.weight}

    def restore(self, state) -> None:
        self.weight = state["weight"]


class ForgetsOnRestore(Learner):
    def restore(self, state) -> None:
        pass


class RemembersBesideItsState(Learner):
    extra = 0.0

    def learn(self, feedback, key) -> None:
        super().learn(feedback, key)
        self.extra += len(feedback)

    def score(self, view, key) -> Tensor:
        return super().score(view, key) + self.extra * torch.from_numpy(view.ids.hashes() % 89 / 89.0).float()


class LearnsWhileSelecting(Learner):
    def select(self, view, n, key) -> Selection:
        self.weight = self.weight + 0.01
        return super().select(view, n, key)


class LearnsNanFromNothing(Learner):
    def learn(self, feedback, key) -> None:
        if feedback:
            self.weight = feedback[-1].answers[feedback[-1].answers >= 0].float().mean()


class LearnsAtRandom(Learner):
    def learn(self, feedback, key) -> None:
        self.weight = torch.rand(())


class ChangesTheSnapshot(Learner):
    def learn(self, feedback, key) -> None:
        for one in feedback:
            one.snapshot["logits"].zero_()


@pytest.mark.parametrize("make", [Sound, Learner])
def test_the_sound_strategies_pass(make) -> None:
    check_strategy(make)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (NotAPrefix, "no prefix"),
        (RepeatsRows, "twice"),
        (TooFew, "expected"),
        (NanScores, "not a number"),
        (DrawsGlobally, "prefix|global stream|how many were asked"),
        (ReadsPoolRows, "order of the pool"),
        (ChangesLogits, "changed column 'logits'|prefix"),
        (SnapshotOfAllRows, "snapshot 'logits' has"),
        (SnapshotDependsOnN, "depends on how many"),
        (PurityOfSelectedOnly, "its purity is not"),
        (ForgetsOnRestore, "changed weight"),
        (RemembersBesideItsState, "once it was stored and restored"),
        (LearnsWhileSelecting, "from call to call"),
        (LearnsNanFromNothing, "not finite after"),
        (LearnsAtRandom, "the same answers again"),
        (ChangesTheSnapshot, "changed logits"),
    ],
)
def test_a_broken_strategy_is_named(make, message: str) -> None:
    with pytest.raises((AssertionError, PluginError, ValueError), match=message):
        check_strategy(make, name=make.__name__)


def test_a_strategy_that_cannot_run_out_of_items_is_caught() -> None:
    with pytest.raises(RuntimeError, match="out of range"):
        check_strategy(BreaksOnMoreThanThereAre)
