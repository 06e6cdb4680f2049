"""What the pages send, checked where it comes in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mqnet.store.inbox import Given
from mqnet.types import OOD, SKIP, Answer, Known

ItemName = Annotated[str, Field(min_length=1, max_length=4096)]


class Body(BaseModel):
    """A request body: nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KnownBody(Body):
    """The item belongs to a known class."""

    kind: Literal["known"]
    name: str = Field(min_length=1, max_length=1000)


class OtherBody(Body):
    """The item is none of the known classes, or the annotator cannot tell."""

    kind: Literal["ood", "skip"]


class AnswerBody(Body):
    """An answer to an item; `key` is made by the page, once for each answer: sent again, nothing happens."""

    item: ItemName
    answer: Annotated[KnownBody | OtherBody, Field(discriminator="kind")]
    seconds: float | None = Field(default=None, ge=0, le=86_400, allow_inf_nan=False)
    view: Literal["focus", "grid", "review"] = "focus"
    key: str = Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")

    def given(self) -> Given:
        """The answer as the inbox takes it."""
        return Given(self.item, meant(self.answer), self.key, self.seconds, self.view)


class AnswersBody(Body):
    """Answers to be taken all or none."""

    answers: list[AnswerBody] = Field(min_length=1, max_length=500)


class FlagBody(Body):
    """An item to look at again, or no longer."""

    item: ItemName
    flagged: bool
    note: str = Field(default="", max_length=1000)


class PersonBody(Body):
    """Somebody to let in."""

    name: str = Field(min_length=1, max_length=40)
    role: Literal["owner", "annotator"] = "annotator"


class Nothing(Body):
    """An empty object."""


class ErrorBody(BaseModel):
    """What went wrong, in one sentence."""

    error: str


def meant(body: KnownBody | OtherBody) -> Answer:
    """The answer a body stands for."""
    if isinstance(body, KnownBody):
        return Known(body.name)
    return OOD if body.kind == "ood" else SKIP


def shown(answer: Answer) -> dict[str, str]:
    """An answer as the pages understand it."""
    return {"kind": "known", "name": answer.name} if isinstance(answer, Known) else {"kind": answer.value}
