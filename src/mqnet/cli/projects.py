"""`mqnet ask`, `tell`, `status` and `undo` of a project: what imports no torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from mqnet.cli.progress import Phases
from mqnet.project import work
from mqnet.project.answers import parse_answers, read_answers
from mqnet.project.folder import opened
from mqnet.project.work import Progress, TakenBack


def ask(folder: Path, n: int | None, as_json: bool) -> None:
    """Print the open items, one a line."""
    with Phases(silent=as_json) as phases:
        found = work.ask(folder, phases)
    items = found.items[:n]
    if as_json:
        print(json.dumps({**found.record(), "items": items}, ensure_ascii=False))
        return
    for item in items:
        shown = item.get("text", item.get("image"))
        print(item["item"] if shown is None else f"{item['item']}\t{' '.join(str(shown).split())}")
    print(sentence(found.progress), file=sys.stderr)


def tell(folder: Path, file: str, annotator: str, as_json: bool) -> None:
    """Take a file's answers, or those of standard input."""
    with opened(folder) as (store, _):
        classes = store.config().classes
    if file == "-":
        answers = parse_answers(sys.stdin.read(), classes, "standard input")
    else:
        answers = read_answers(Path(file), classes)
    told = work.tell(folder, answers, annotator)
    if as_json:
        print(json.dumps(told.record()))
        return
    early = f", {told.early} kept for a later query" if told.early else ""
    print(f"{told.charged} answers taken{early}.")
    print(sentence(told.progress))


def undo(folder: Path, n: int, annotator: str, as_json: bool) -> None:
    """Take back the last answers."""
    taken = work.undo(folder, n, annotator)
    if as_json:
        print(json.dumps({"undone": [asdict(one) for one in taken]}, ensure_ascii=False))
        return
    for one in taken:
        print(_taken(one))


def status(folder: Path, as_json: bool) -> None:
    """Print what a project is and where it stands."""
    found = work.status(folder)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    width = max(map(len, found))
    for name, value in found.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else _number(value)
        print(f"{name.replace('_', ' '):<{width}}  {shown}")
    print(next_step(found, folder))


def sentence(where: Progress) -> str:
    """A project's progress in a sentence."""
    total = "" if where.total_budget is None else f" of {where.total_budget:g}"
    what = {
        "asking": f"{where.open} item{' is' if where.open == 1 else 's are'} open in round {where.round}",
        "training": f"round {where.round} is answered and a worker ranks the next",
        "waiting": f"round {where.round} is answered: `mqnet ask` ranks the next",
        "done": "the campaign is done",
    }[where.state]
    return (
        f"{what[0].upper()}{what[1:]}; {where.spent:g}{total} spent on {where.known} known and {where.ood} OOD items."
    )


def next_step(found: Mapping[str, object], folder: Path) -> str:
    """What to do now, in a sentence."""
    place = "" if str(folder) == "mqnet-campaign" else f" {folder}"
    return {
        "asking": f"Next: `mqnet label{place}` opens the labelling page; `mqnet ask{place}` lists the open items.",
        "training": "Next: wait for the worker; it ranks the next round.",
        "waiting": f"Next: `mqnet label{place}` or `mqnet ask{place}` ranks the next round.",
        "done": f"Next: `mqnet report{place}`, `mqnet export{place}`, `mqnet predict{place}`.",
    }[str(found["state"])]


def _taken(one: TakenBack) -> str:
    if one.withdrawn:
        return f"{one.item}: '{one.answer}' was taken back; it is open again."
    return f"{one.item}: '{one.answer}' stands, since its round is closed. `mqnet tell` another answer to correct it."


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else "-" if value is None else str(value)
