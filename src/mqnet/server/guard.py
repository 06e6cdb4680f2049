"""What every request passes first and every response carries: size, origin, rate; security headers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 64 * 1024
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """ASGI middleware: refuses what is too large or comes from elsewhere before anything reads it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, guarded)
            return
        if headers.get("x-mqnet") != "1" or _foreign(headers):
            await _refuse(guarded, 403, "this request does not come from mqnet's own pages.")
            return
        body = await _read(headers, receive)
        if body is None:
            await _refuse(guarded, 413, f"a request may hold {MOST_BYTES // 1024} KiB. Send fewer answers at once.")
            return
        parts: Iterable[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            for part in parts:
                return part
            return await receive()

        await self._app(scope, replay, guarded)


def _foreign(headers: Headers) -> bool:
    """Whether a browser says that another site made this request."""
    origin = headers.get("origin")
    if headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
        return True
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


async def _read(headers: Headers, receive: Receive) -> bytes | None:
    """The body; None as soon as it is known to be too large: what is announced so is not read at all."""
    announced = headers.get("content-length", "0")
    if not announced.isascii() or not announced.isdigit() or int(announced) > MOST_BYTES:
        return None
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    # the rest of the body is not read: the connection cannot be used again
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Rate:
    """A bucket of requests for each name: `burst` at once, `per_second` in the long run."""

    per_second: float
    burst: float
    _left: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def allows(self, name: str) -> bool:
        """Whether this name may make one more request now; it counts."""
        now = time.monotonic()
        left, since = self._left.get(name, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.per_second)
        if len(self._left) > 10_000:  # names of strangers are addresses: forget those who have been quiet
            self._left = {key: value for key, value in self._left.items() if now - value[1] < 60}
        self._left[name] = (left - 1 if left >= 1 else left, now)
        return left >= 1
