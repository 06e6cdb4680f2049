"""Items and answers in Label Studio's words: labelling configuration, tasks, predictions, annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from mqnet.errors import AnswerError, nearest_name
from mqnet.types import OOD, SKIP, Answer, Known

ITEM_FIELD = "mqnet_item"
"""Where a task's data holds the id of its item."""
NONE_OF_THESE = "none of these"
"""The choice that means OOD."""
CHOICES, SHOWN = "label", "item"
"""Names of the tag that is answered and of the one that is shown."""
Json = dict[str, Any]


def label_config(kind: str, classes: Sequence[str]) -> str:
    """The labelling configuration of a campaign: the item, one choice for each class, and one for OOD."""
    shown = f'<Image name="{SHOWN}" value="$image"/>' if kind == "image" else f'<Text name="{SHOWN}" value="$text"/>'
    choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in (*classes, NONE_OF_THESE))
    return f'<View>{shown}<Choices name="{CHOICES}" toName="{SHOWN}" choice="single">{choices}</Choices></View>'


def task_data(item: str, kind: str, content: str) -> Json:
    """A task's data: its item's id, and the text or the image's address (the id itself for bare vectors)."""
    return {ITEM_FIELD: item, "image" if kind == "image" else "text": content if kind != "vector" else item}


def prediction(model_version: str, name: str | None, score: float) -> Json:
    """A prediction: the class (None: no opinion), and the score that puts the task in its place, lowest first."""
    return {"model_version": model_version, "score": score, "result": [] if name is None else [_choice(name)]}


def annotation(answer: Answer) -> Json:
    """An annotation that says this answer."""
    if answer is SKIP:
        return {"result": [], "was_cancelled": True}
    return {"result": [_choice(answer.name if isinstance(answer, Known) else NONE_OF_THESE)], "was_cancelled": False}


def answer_of(given: Mapping[str, Any], classes: Sequence[str]) -> Answer:
    """The answer an annotation says: its choice, OOD, or SKIP where it was cancelled or left empty.

    A choice that is no class of the campaign, or more than one, is an error that names it.
    """
    if given.get("was_cancelled"):
        return SKIP
    chosen: list[str] = [
        str(name)
        for region in given.get("result") or []
        if isinstance(region, dict) and region.get("type") == "choices"
        for name in (region.get("value") or {}).get("choices") or []
    ]
    where = f"annotation {given.get('id', '?')}"
    if not chosen:
        return SKIP
    if len(chosen) > 1:
        raise AnswerError(f"{where} chooses {' and '.join(chosen)}: an item has one answer.")
    if chosen[0] == NONE_OF_THESE:
        return OOD
    if chosen[0] not in classes:
        raise AnswerError(f"{where} chooses '{chosen[0]}'.{nearest_name(chosen[0], (*classes, NONE_OF_THESE))}")
    return Known(chosen[0])


def _choice(name: str) -> Json:
    return {"from_name": CHOICES, "to_name": SHOWN, "type": "choices", "value": {"choices": [name]}}
