"""`mqnet init`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mqnet.cli.bars import Bar
from mqnet.data.sources import open_source
from mqnet.encoders.base import default_encoder
from mqnet.errors import ConfigError, InputError
from mqnet.project.answers import read_answers
from mqnet.project.start import People, import_summary, start
from mqnet.project.vectors import vectors_of
from mqnet.types import Budget, BudgetUnit, CampaignConfig, Costs, CostSource, Initial, Plugin


@dataclass(frozen=True)
class Wanted:
    """The command's options."""

    source: Path
    classes: str | None
    classes_file: Path | None
    total_budget: float
    round_budget: float
    out: Path
    encoder: str | None
    skip_unreadable: bool
    text_column: str | None
    id_column: str | None
    labels: Path | None
    cost_known: float
    cost_ood: float
    cost_skip: float
    budget_unit: BudgetUnit
    ranking_costs: CostSource
    audit_share: float
    initial: Initial
    rounds: int | None
    strategy: str
    model: str
    seed: int
    overlap: int
    lease: float
    early_answers: bool
    name: str


def init(wanted: Wanted, as_json: bool) -> None:
    """Make a project and say what to do next."""
    config = CampaignConfig(
        classes=class_names(wanted.classes, wanted.classes_file),
        budget=Budget(wanted.round_budget, wanted.total_budget, wanted.budget_unit),
        costs=Costs(wanted.cost_known, wanted.cost_ood, wanted.cost_skip),
        rounds=wanted.rounds,
        strategy=Plugin(wanted.strategy),
        model=Plugin(wanted.model),
        seed=wanted.seed,
        audit_share=wanted.audit_share,
        initial=wanted.initial,
        ranking_costs=wanted.ranking_costs,
    )
    labels = read_answers(wanted.labels, config.classes) if wanted.labels is not None else {}
    source = open_source(wanted.source, text_column=wanted.text_column, id_column=wanted.id_column)
    advice = "" if wanted.encoder or source.kind == "vector" else default_encoder(source.kind)[1]
    with Bar(f"vectors of {len(source)} {source.kind}s", as_json) as bar:
        encoder, vectors = vectors_of(source, wanted.encoder, bar.watch, skip_unreadable=wanted.skip_unreadable)
        made = start(
            source,
            wanted.out,
            config,
            vectors,
            encoder=encoder,
            people=People(wanted.name, wanted.overlap, wanted.lease, wanted.early_answers),
            labels=labels,
        )
    if as_json:
        print(made.json())
        return
    place = "" if str(made.folder) == "mqnet-campaign" else f" {made.folder}"
    print(f"A campaign over {made.n_items} {made.kind}s was made in '{made.folder}'.")
    if made.n_left_out:
        print(
            f"{made.n_left_out} items could not be read and were left out: `mqnet doctor {wanted.source}` names them."
        )
    if advice:
        print(advice)
    if labels:
        print(f"{made.n_imported} labels were imported, uncharged, as round 0: {import_summary(labels)}.")
    print(
        f"Next: `mqnet label{place}` starts the labelling page; `mqnet ask{place}` lists the first items to answer, "
        "for scripts."
    )


def class_names(listed: str | None, file: Path | None) -> tuple[str, ...]:
    """The classes of a list separated by commas, or of a file with one on each line; exactly one is given."""
    if (listed is None) == (file is None):
        raise ConfigError("name the known classes: --classes cat,dog or --classes-file FILE with one on each line.")
    if listed is not None:
        return tuple(name.strip() for name in listed.split(","))
    assert file is not None
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file of classes '{file}' cannot be read: {error}.") from error
    return tuple(line.strip() for line in lines if line.strip())
