"""The labelling web app of one campaign: pages, an API, and a guard in front of both."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException

from mqnet.errors import MqnetError, StoreError
from mqnet.server import labelling, showing
from mqnet.server.access import Doorkeeper
from mqnet.server.desk import Desk
from mqnet.server.guard import Guard
from mqnet.server.shapes import ErrorBody
from mqnet.store.inbox import NotOpenError, UnknownItemError

STATIC = Path(__file__).parent / "static"
PAGES = {"/": "index.html", "/dashboard": "dashboard.html", "/review": "review.html", "/people": "people.html"}
YEAR = 365 * 24 * 3600
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": why}
    for status, why in {
        401: "no token, or nobody's",
        403: "not for this role, or from another site",
        404: "no such item",
        409: "not open now",
        413: "too large",
        422: "malformed",
        429: "too many requests",
    }.items()
}
ENTER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>mqnet</title>
<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Continue</a></p></html>"""


def create_app(folder: str | Path) -> FastAPI:
    """The app of the campaign in a folder. It holds the database until it is shut down."""
    desk = Desk.open(Path(folder))

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None]:
        yield
        desk.close()

    # the schema stays for tools and tests; the pages that draw it need scripts from elsewhere
    app = FastAPI(title="mqnet", docs_url=None, redoc_url=None, lifespan=life, responses=REFUSALS)
    app.state.desk = desk
    app.state.door = Doorkeeper(desk.people, desk.cookie)
    app.add_middleware(Guard)
    app.include_router(labelling.router)
    app.include_router(showing.router)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(MqnetError, _mistaken)
    app.add_exception_handler(Exception, _failed)
    app.get("/login", response_class=HTMLResponse)(_login)
    for path, name in PAGES.items():
        app.get(path, include_in_schema=False)(_page(name))
    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False))
    return app


async def _login(request: Request, token: str) -> Response:
    """Come in by a personal link: the token moves from the address into a cookie that scripts cannot read."""
    door: Doorkeeper = request.app.state.door
    await door.user(token, request.client.host if request.client else "")
    # not a redirect: after a click in a mail a browser would follow it without the new, strict cookie
    response = HTMLResponse(ENTER)
    secure = request.url.scheme == "https"
    response.set_cookie(door.cookie, token, max_age=YEAR, httponly=True, samesite="strict", secure=secure)
    return response


def _page(name: str) -> Any:
    async def page() -> Response:
        # pages hold no data: what they show they ask for, with the cookie
        return HTMLResponse((STATIC / name).read_text(encoding="utf-8"), headers={"Cache-Control": "no-cache"})

    return page


def _error(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers=headers)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    plain = {404: "there is nothing here.", 405: "this cannot be done here."}
    sentence = (
        str(error.detail) if isinstance(error, HTTPException) else plain.get(error.status_code, str(error.detail))
    )
    return _error(error.status_code, sentence, dict(error.headers or {}))


async def _malformed(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    # the value itself is not repeated: it may be anything
    place = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, int) or str(part).isidentifier())
    return _error(422, f"{place or 'the request'}: {first['msg']}")


async def _mistaken(_: Request, error: Exception) -> Response:
    kinds = ((UnknownItemError, 404), (NotOpenError, 409), (StoreError, 507))
    status = next((status for kind, status in kinds if isinstance(error, kind)), 422)
    return _error(status, str(error))


async def _failed(_: Request, error: Exception) -> Response:
    return _error(500, f"a fault in mqnet ({type(error).__name__}); the server's terminal says more.")
