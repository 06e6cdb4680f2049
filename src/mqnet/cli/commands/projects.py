"""Campaigns with people, from a script or a terminal: `init`, `ask`, `tell`, `undo`, `export`, `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqnet.cli.app import JsonOption, app
from mqnet.types import BudgetUnit, CostSource, Initial

HOME = Path("mqnet-campaign")
FolderArgument = Annotated[Path, typer.Argument(help="The campaign's folder.", show_default=True)]
AsOption = Annotated[str, typer.Option("--as", help="Who answers.")]


@app.command()
def init(
    source: Annotated[Path, typer.Argument(help="A folder of images, a table of texts, or a file of vectors.")],
    classes: Annotated[str | None, typer.Option("--classes", help="The known classes, separated by commas.")] = None,
    classes_file: Annotated[
        Path | None, typer.Option("--classes-file", help="A file with a class on each line.")
    ] = None,
    total_budget: Annotated[float, typer.Option("--total-budget", help="What all rounds may spend.")] = 500,
    round_budget: Annotated[float, typer.Option("--round-budget", help="What a round may spend.")] = 50,
    out: Annotated[Path, typer.Option("--out", help="The folder to make.")] = HOME,
    encoder: Annotated[
        str | None, typer.Option("--encoder", help="What makes vectors of images or texts (default: one that is here).")
    ] = None,
    skip_unreadable: Annotated[
        bool, typer.Option("--skip-unreadable", help="Leave out items that cannot be read, instead of stopping.")
    ] = False,
    text_column: Annotated[str | None, typer.Option("--text-column", help="Of a table: the column of texts.")] = None,
    id_column: Annotated[str | None, typer.Option("--id-column", help="Of a table: the column of ids.")] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Labels that are there already: CSV or JSON of item and label.")
    ] = None,
    cost_known: Annotated[float, typer.Option("--cost-known", help="What an answer that names a class costs.")] = 1.0,
    cost_ood: Annotated[float, typer.Option("--cost-ood", help="What the answer 'none of these' costs.")] = 1.0,
    cost_skip: Annotated[float, typer.Option("--cost-skip", help="What a skip costs.")] = 0.0,
    budget_unit: Annotated[
        BudgetUnit, typer.Option("--budget-unit", help="What budgets count: labels at their costs, or minutes.")
    ] = "labels",
    ranking_costs: Annotated[
        CostSource, typer.Option("--ranking-costs", help="Which costs the ranking reckons with.")
    ] = "stated",
    audit_share: Annotated[
        float,
        typer.Option(
            "--audit-share", min=0, max=0.9, help="The share of labels drawn at random, for honest estimates."
        ),
    ] = 0.05,
    initial: Annotated[Initial, typer.Option("--initial", help="How the first round is drawn.")] = "random",
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Rounds at most (default: no limit).")] = None,
    strategy: Annotated[str, typer.Option("--strategy", help="How items are chosen (`mqnet list`).")] = "mqnet",
    model: Annotated[str, typer.Option("--model", help="The target model (`mqnet list`).")] = "head",
    seed: Annotated[int, typer.Option("--seed", help="Of everything random.")] = 0,
    overlap: Annotated[int, typer.Option("--overlap", min=1, help="How many people answer each item.")] = 1,
    lease: Annotated[float, typer.Option("--lease", min=1, help="Seconds an item waits for one person.")] = 120.0,
    early_answers: Annotated[
        bool, typer.Option("--early-answers/--no-early-answers", help="People go on while the loop trains.")
    ] = True,
    name: Annotated[str, typer.Option("--name", help="What the campaign is called (default: the source's name).")] = "",
    json: JsonOption = False,
) -> None:
    """Make a campaign with people from a pool: nothing is changed in the pool, everything lies in one folder."""
    from mqnet.cli import init as starting

    starting.init(
        starting.Wanted(
            source, classes, classes_file, total_budget, round_budget, out, encoder, skip_unreadable,
            text_column, id_column, labels, cost_known, cost_ood, cost_skip, budget_unit, ranking_costs, audit_share,
            initial, rounds, strategy, model, seed, overlap, lease, early_answers, name,
        ),
        json,
    )  # fmt: skip


@app.command()
def ask(
    folder: FolderArgument = HOME,
    n: Annotated[int | None, typer.Option("--n", min=1, help="At most so many items (default: all open).")] = None,
    json: JsonOption = False,
) -> None:
    """List the items that are open for answers, most wanted first; ranks the next round if none are."""
    from mqnet.cli import projects

    projects.ask(folder, n, json)


@app.command()
def tell(
    file: Annotated[str, typer.Argument(help="Answers as JSON, JSON lines or CSV; - reads standard input.")],
    folder: FolderArgument = HOME,
    annotator: AsOption = "script",
    json: JsonOption = False,
) -> None:
    """Take answers to all or some of the open items, and corrections."""
    from mqnet.cli import projects

    projects.tell(folder, file, annotator, json)


@app.command()
def undo(
    folder: FolderArgument = HOME,
    n: Annotated[int, typer.Option("--n", min=1, help="How many answers.")] = 1,
    annotator: AsOption = "script",
    json: JsonOption = False,
) -> None:
    """Take back the last answers given by `mqnet tell`, or by the person named."""
    from mqnet.cli import projects

    projects.undo(folder, n, annotator, json)


@app.command()
def export(
    folder: FolderArgument = HOME,
    form: Annotated[
        str, typer.Option("--format", help="csv, jsonl, parquet, hf (Hugging Face folder), coco or labelstudio.")
    ] = "csv",
    out: Annotated[Path | None, typer.Option("--out", help="The file to write (hf and --model: a folder).")] = None,
    model: Annotated[bool, typer.Option("--model", help="Export the model of all answers, not the answers.")] = False,
    with_ood: Annotated[bool, typer.Option("--with-ood", help="Items answered 'none of these', too.")] = False,
    with_skipped: Annotated[bool, typer.Option("--with-skipped", help="Skipped items, too.")] = False,
    image_prefix: Annotated[
        str, typer.Option("--image-prefix", help="Of labelstudio: what stands before an image's path.")
    ] = "/data/local-files/?d=",
    json: JsonOption = False,
) -> None:
    """Write the labelled items for other tools, or the model trained on them."""
    from mqnet.cli import outcome

    names = {"hf": "labels", "coco": "labels.coco.json", "labelstudio": "labels.labelstudio.json"}
    if model:
        outcome.model(folder, out or folder / "export" / "model", json)
    else:
        place = out or folder / "export" / names.get(form, f"labels.{form}")
        outcome.labels(folder, form, place, with_ood, with_skipped, image_prefix, json)


@app.command()
def predict(
    folder: FolderArgument = HOME,
    items: Annotated[
        Path | None, typer.Option("--items", help="New items instead of the pool: a source of the same kind.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="A .csv, .jsonl or .parquet file.")] = Path("predictions.csv"),
    text_column: Annotated[str | None, typer.Option("--text-column", help="Of new texts: their column.")] = None,
    json: JsonOption = False,
) -> None:
    """Write what every item probably is: a class, how sure that is, and whether it is none of them."""
    from mqnet.cli import outcome

    outcome.predict(folder, items, out, text_column, json)
