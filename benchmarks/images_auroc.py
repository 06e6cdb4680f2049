"""How well purity scores tell known items from junk, round by round, on the labels that one strategy bought.

python benchmarks/images_auroc.py RUN [STRATEGY]     RUN: a finished `mqnet run` on images; STRATEGY: default random
"""

from __future__ import annotations

import sys
from pathlib import Path

from torch import Tensor

from mqnet.experiment.campaigns import cell_learner, cell_scenario, truth_of
from mqnet.experiment.cells import Cell, grid
from mqnet.experiment.statistics import auroc
from mqnet.experiment.stored import stored_config
from mqnet.loop.coders import CoderJob, FolderShelf
from mqnet.loop.learner import SHARED
from mqnet.models.contrastive.coder import Coder
from mqnet.models.encode import encode_items
from mqnet.numerics.threads import one_thread
from mqnet.registry import PURITY
from mqnet.view import LabelledView, RoundView

CLASSIFIER = ("energy", "msp", "knn", "evidence")
REFERENCES = ("in", "ood", "both")


def representations(coder: Coder, images: Tensor) -> dict[str, Tensor]:
    """The pool in every space that the coder's options offer."""
    out: dict[str, Tensor] = {}
    for space in ("features", "projection"):
        config = coder.config.model_copy(update={"space": space, "rotations": 4})
        other = Coder(coder.kind, config, coder.net, coder.mean, coder.deviation, coder.device)
        four = other.encode(images)
        out |= {f"{space}, 1 rotation": four[:, : four.shape[1] // 4], f"{space}, 4 rotations": four}
    return out


def finished_coder(out: Path, cell: Cell) -> Coder | None:
    """The cell's CSI coder, if the run has trained it."""
    pool, shelf = cell_scenario(cell).pool, FolderShelf(out / SHARED)
    job = CoderJob("csi", cell.config.coder, pool.fingerprint(), cell.seed)
    return shelf.space(job, pool).coder if shelf.finished(job) else None


def measured(out: Path, cell: Cell, coder: Coder | None) -> None:
    """Print the AUROC of every purity score in every round of a cell."""
    pool, truth = cell_scenario(cell).pool, truth_of(cell_scenario(cell))
    spaces = representations(coder, pool.load(pool.ids.sorted())) if coder is not None else {}
    with cell_learner(out, cell) as learner:
        ids = learner.pool.ids.sorted()
        place = {item: row for row, item in enumerate(ids)}
        for round_ in range(1, len(learner.store.rounds())):
            model, view = learner.view(round_)
            is_known = truth.of(view.ids) >= 0
            needs = frozenset().union(*(PURITY.get(name).needs for name in CLASSIFIER))
            columns = encode_items(model, pool, view.ids, needs)
            labelled = encode_items(model, pool, view.labelled.ids, needs)
            whole = RoundView(
                view.ids, columns, LabelledView(view.labelled.ids, labelled, view.labelled.answers), view.n_classes,
                key=view.key,
            )  # fmt: skip
            print(f"\n{cell.title}, round {round_}: {len(view.labelled)} labels, {view.n_ood} of them OOD")
            line = {name: auroc(PURITY.score(name)(whole).numpy(), is_known) for name in CLASSIFIER}
            print("  " + "  ".join(f"{name} {value:.3f}" for name, value in line.items()))
            rows = [[place[item] for item in some] for some in (view.ids, view.labelled.ids)]
            for name, space in spaces.items():
                columns, labelled = (dict.fromkeys(("contrastive", "embedding"), space[some]) for some in rows)
                seen = RoundView(
                    view.ids, columns, LabelledView(view.labelled.ids, labelled, view.labelled.answers),
                    view.n_classes, key=view.key,
                )  # fmt: skip
                found = [
                    f"{reference}{'*norm' if norm == 'on' else ''} "
                    f"{auroc(PURITY.score('csi', {'reference': reference, 'norm': norm})(seen).numpy(), is_known):.3f}"
                    for norm in ("off", "on")
                    for reference in REFERENCES
                ]
                there = auroc(PURITY.score("evidence")(seen).numpy(), is_known)
                print(f"  csi ({name}): " + "  ".join(found) + f"  evidence in this space {there:.3f}")


def main() -> None:
    out, wanted = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "random"
    with one_thread():
        for cell in grid(stored_config(out)):
            if cell.strategy_label == wanted:
                measured(out, cell, finished_coder(out, cell))


if __name__ == "__main__":
    main()
