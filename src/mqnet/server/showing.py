"""Routes that show: items and their images, the dashboard, what to review, the people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse

from mqnet.server.access import Doorkeeper, Owner, Someone
from mqnet.server.desk import AtDesk
from mqnet.server.images import MissingImageError
from mqnet.server.shapes import Nothing, PersonBody, shown
from mqnet.store.items import IMAGE
from mqnet.store.overview import Case
from mqnet.store.people import OWNER

router = APIRouter(prefix="/api")
Json = dict[str, Any]
Size = Annotated[int | None, Query(ge=16, le=2048)]


@router.get("/items/{item_id:path}/image")
async def image(desk: AtDesk, user: Someone, request: Request, item_id: str, size: Size = None) -> Response:
    """The image of an item: found by the item's id, never by a path."""
    item = await desk.read(lambda: desk.store.item(item_id))
    images = desk.images
    if item is None or item.kind != IMAGE or images is None:
        raise HTTPException(404, "there is no such image.")
    try:
        picture = await desk.read(lambda: images.picture(item.ref, size))
    except MissingImageError as error:
        raise HTTPException(404, str(error)) from error
    headers = {"ETag": picture.etag, "Cache-Control": "private, max-age=3600"}
    if picture.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if picture.path is not None:
        return FileResponse(picture.path, media_type=picture.media_type, headers=headers)
    return Response(picture.content, media_type=picture.media_type, headers=headers)


@router.get("/items/{item_id:path}")
async def item(desk: AtDesk, user: Someone, item_id: str) -> Json:
    """An item; for an owner with the answers people gave."""
    if not await desk.read(lambda: desk.inbox.knows(item_id)):
        raise HTTPException(404, "there is no such item.")
    card = (await desk.read(lambda: desk.shown([item_id])))[item_id]
    if user.role != OWNER:
        return card
    return {**card, **_case(await desk.read(lambda: desk.overview.case(item_id)))}


@router.get("/dashboard")
async def dashboard(desk: AtDesk, user: Someone) -> Json:
    """The whole campaign in numbers, and what the loop found out in its last round."""
    found = asdict(await desk.read(desk.overview.dashboard))
    found["seconds"]["by_view"] = found.pop("seconds_by_view")
    return {**found, "insight": await desk.read(desk.health.insight)}


@router.get("/review")
async def review(desk: AtDesk, user: Owner) -> Json:
    """Items that people disagree about or flagged."""
    cases = await desk.read(desk.overview.review)
    cards = await desk.read(lambda: desk.shown([case.item for case in cases]))
    return {"items": [{**cards[case.item], **_case(case)} for case in cases]}


@router.get("/people")
async def people(desk: AtDesk, user: Owner) -> Json:
    """Who may come in."""
    return {"people": [asdict(person) for person in await desk.read(desk.people.everybody)]}


@router.post("/people")
async def add_person(desk: AtDesk, user: Owner, request: Request, body: PersonBody) -> Json:
    """Let somebody in: their link is shown this once."""
    token = await desk.write(lambda: desk.people.add(body.name, body.role))
    _forget(request)
    return {"name": body.name, "role": body.role, "link": f"{str(request.base_url).rstrip('/')}/login?token={token}"}


@router.post("/people/{name}/revoke")
async def revoke(desk: AtDesk, user: Owner, request: Request, name: str, body: Nothing) -> Json:
    """Let somebody in no longer; their answers stay."""
    await desk.write(lambda: desk.people.revoke(name))
    _forget(request)
    return {"name": name, "revoked": True}


def _forget(request: Request) -> None:
    door: Doorkeeper = request.app.state.door
    door.forget()


def _case(case: Case) -> Json:
    return {
        "votes": [
            {"annotator": vote.annotator, "answer": shown(vote.answer), "view": vote.view, "at": vote.answered_at}
            for vote in case.votes
        ],
        "proposed": None if case.proposed is None else shown(case.proposed),
        "flags": [{"annotator": mark.annotator, "note": mark.note, "at": mark.flagged_at} for mark in case.flags],
    }
