"""A cell's campaign: opened to run it, or again to look at its rounds."""

from __future__ import annotations

from pathlib import Path

from mqnet.data.scenarios import Scenario
from mqnet.errors import InputError
from mqnet.experiment.cells import Cell, grid, open_scenario, reserve_for
from mqnet.experiment.simulate import Meter
from mqnet.experiment.stored import CONFIG, cell_folder, stored_config
from mqnet.loop.learner import SHARED, ActiveLearner
from mqnet.oracles.simulated import Truth
from mqnet.store.campaign import DATABASE
from mqnet.store.imported import has_begun, import_answers
from mqnet.types import Known


def cell_scenario(cell: Cell) -> Scenario:
    """The pool, truth and test items of a cell."""
    return open_scenario(cell.config.scenario, cell.ood_share, cell.seed, reserve_for(cell))


def truth_of(scenario: Scenario) -> Truth:
    """What the items of a scenario's pool really are."""
    return Truth(scenario.pool.ids, scenario.labels, scenario.classes)


def cell_learner(out: Path, cell: Cell) -> ActiveLearner:
    """The campaign of a cell in its folder, measured round by round."""
    scenario, c = cell_scenario(cell), cell.config.campaign
    truth, model = truth_of(scenario), cell.config.model.plugin()
    learner = ActiveLearner(
        scenario.pool,
        scenario.classes,
        budget=c.budget,
        rounds=c.rounds,
        total_budget=c.total_budget,
        cost_known=c.cost_known,
        cost_ood=c.cost_ood,
        cost_skip=c.cost_skip,
        strategy={"name": cell.strategy.name, **cell.strategy.options},
        model={"name": model.name, **model.options},
        seed=cell.seed,
        coder=cell.config.coder,
        folder=cell_folder(out, cell),
        shared=out / SHARED,
        truth=truth,
        validation=scenario.reserved,
        monitor=Meter(truth, scenario.test),
    )
    if scenario.initial is not None and not has_begun(learner.store):
        names = [Known(scenario.classes[label]) for label in truth.of(scenario.initial)]
        import_answers(learner.store, dict(zip(scenario.initial, names, strict=True)))
    return learner


def open_campaign(folder: Path, cell: str | None = None) -> ActiveLearner:
    """The campaign of a folder: its own, that of a cell's folder, or of one cell of a run (the first mqnet cell)."""
    if (folder / CONFIG).is_file():
        return cell_learner(folder, _chosen(folder, cell))
    run = folder.parent.parent
    if (run / CONFIG).is_file() and folder.parent.name == "cells":
        return cell_learner(run, _chosen(run, folder.name))
    if not (folder / DATABASE).is_file():
        raise InputError(f"'{folder}' holds neither a run nor a campaign.")
    return ActiveLearner.open(folder)


def _chosen(run: Path, wanted: str | None) -> Cell:
    cells = [cell for cell in grid(stored_config(run)) if (run / "cells" / cell.digest / DATABASE).is_file()]
    found = [cell for cell in cells if (cell.digest == wanted if wanted else cell.strategy.name == "mqnet")]
    if not found:
        raise InputError(f"'{run}' holds no {'cell ' + wanted if wanted else 'campaign of mqnet'} that has begun.")
    return found[0]
