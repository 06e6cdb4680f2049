"""Routes of those who answer: what to answer next, answers, undo, history, flags, the state of things."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from mqnet.server.access import Someone
from mqnet.server.desk import AtDesk, Desk
from mqnet.server.shapes import AnswersBody, FlagBody, Nothing, shown
from mqnet.store.consensus import REVIEW
from mqnet.store.overview import Situation
from mqnet.store.people import OWNER

router = APIRouter(prefix="/api")
Json = dict[str, Any]


@router.get("/campaign")
async def campaign(desk: AtDesk, user: Someone) -> Json:
    """What the campaign is, and who is asking."""
    config = await desk.read(desk.store.config)
    n_items = (await desk.read(desk.store.pool)).get("n_items", 0)
    return {
        "id": desk.cookie,  # tells campaigns apart that are served at one address, one after the other
        "name": desk.project.name,
        "classes": list(config.classes),
        "kind": desk.project.kind,
        "round_budget": config.budget.round,
        "total_budget": config.budget.total,
        "costs": asdict(config.costs),
        "budget_unit": config.budget.unit,
        "n_items": n_items,
        "overlap": desk.project.overlap,
        "early_answers": desk.project.early_answers,
        "user": {"name": user.name, "role": user.role},
    }


@router.get("/state")
async def state(desk: AtDesk, user: Someone) -> Json:
    """What is going on now."""
    return _situation(await desk.read(desk.overview.situation))


@router.get("/next")
async def next_items(desk: AtDesk, user: Someone, n: Annotated[int, Query(ge=0, le=200)] = 10) -> Json:
    """The next items for this person, lent to them for a while."""

    def lend() -> list[Json]:
        offers = desk.inbox.next(user.name, n)
        cards = desk.shown([offer.item for offer in offers])
        return [{**cards[offer.item], "early": offer.early} for offer in offers]

    items, now = await desk.write.and_look(lend)
    return {**_situation(now), "items": items}


@router.post("/answers")
async def answers(desk: AtDesk, user: Someone, body: AnswersBody) -> Json:
    """Take answers, all or none; durable when this returns. Sent again, they change nothing."""
    if user.role != OWNER and any(one.view == REVIEW for one in body.answers):
        raise HTTPException(403, "only an owner of the campaign may decide in the review.")
    given = [one.given() for one in body.answers]
    receipts, now = await desk.write.and_look(lambda: desk.inbox.submit(user.name, given))
    # flat records: `asdict` would copy each of their values deeply
    return {"accepted": [vars(receipt) for receipt in receipts], "progress": vars(now.progress)}


@router.post("/undo")
async def undo(desk: AtDesk, user: Someone, body: Nothing) -> Json:
    """Take this person's last answer back; again goes further back."""
    undone = await desk.write(lambda: desk.inbox.undo(user.name))
    card = (await desk.read(lambda: desk.shown([undone.item])))[undone.item]
    return {"item": {**card, "early": undone.early}, "was": shown(undone.answer), "withdrawn": undone.withdrawn}


@router.get("/history")
async def history(desk: AtDesk, user: Someone, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Json:
    """This person's answers, newest first."""
    past = await desk.read(lambda: desk.overview.history(user.name, limit))
    cards = await desk.read(lambda: desk.shown([one.item for one in past]))
    return {
        "answers": [
            {
                **cards[one.item],
                "item": one.item,
                "answer": shown(one.answer),
                "round": one.round,
                "at": one.answered_at,
            }
            for one in past
        ]
    }


@router.post("/flags")
async def flag(desk: AtDesk, user: Someone, body: FlagBody) -> Json:
    """Mark an item for the owner to look at, or take the mark away."""
    await _known(desk, body.item)
    await desk.write(lambda: desk.inbox.flag(user.name, body.item, body.flagged, body.note))
    return {"item": body.item, "flagged": body.flagged}


async def _known(desk: Desk, item: str) -> None:
    if not await desk.read(lambda: desk.inbox.knows(item)):
        raise HTTPException(404, "there is no such item.")


def _situation(now: Situation) -> Json:
    worker = {"alive": now.alive, "message": now.worker.message if now.worker else "", "eta_seconds": now.eta_seconds}
    return {
        "round": now.progress.round,
        "state": now.state,
        "message": now.message,
        "progress": vars(now.progress),
        "worker": worker,
    }
