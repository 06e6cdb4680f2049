"""What a run's folder holds, and where."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from mqnet.errors import InputError
from mqnet.experiment.cells import Cell, labelled
from mqnet.experiment.config import ExperimentConfig
from mqnet.experiment.results import Results, read_rows

RESULTS = "results.csv"
CONFIG = "experiment.json"


def stored_config(out: Path) -> ExperimentConfig:
    """The configuration of the run in a folder."""
    path = out / CONFIG
    if not path.is_file():
        raise InputError(f"'{out}' holds no experiment: there is no {CONFIG} in it.")
    try:
        return ExperimentConfig.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"'{path}' is not what this version of mqnet writes. Run the experiment again.") from error


def cell_folder(out: Path, cell: Cell) -> Path:
    """Where a cell's campaign is kept."""
    return out / "cells" / cell.digest


def stored_results(out: Path) -> Results:
    """What has finished of the run in a folder, with the strategies behind the labels."""
    strategies = [labelled(choice) for choice in stored_config(out).grid.strategies]
    return Results(read_rows(out / RESULTS), {label: plugin for plugin, label in strategies})
