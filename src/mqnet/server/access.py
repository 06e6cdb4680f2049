"""Who is asking: a token in a cookie or a header, a role, a rate."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from mqnet.server.guard import Rate
from mqnet.store.people import OWNER, People, User, known_among

FRESH_SECONDS = 1.0
"""How long the list of people is believed: who was revoked elsewhere is out a second later."""


@dataclass
class Doorkeeper:
    """Knows people by their tokens."""

    people: People
    cookie: str
    requests: Rate = field(default_factory=lambda: Rate(per_second=200.0, burst=1000.0))
    strangers: Rate = field(default_factory=lambda: Rate(per_second=2.0, burst=60.0))
    _known: list[tuple[str, User]] = field(default_factory=list[tuple[str, User]])
    _read_at: float = float("-inf")

    async def user(self, token: str | None, address: str) -> User:
        """Whose token this is; nobody's is 401, and 429 for an address that has tried many."""
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            self._known = await asyncio.to_thread(self.people.hashes)
            self._read_at = time.monotonic()
        user = known_among(self._known, token) if token else None
        if user is None:
            if not self.strangers.allows(address):
                raise HTTPException(429, "too many attempts from this address. Wait a minute.")
            raise HTTPException(401, "open your personal link to come in. Whoever runs this campaign can make you one.")
        if not self.requests.allows(user.name):
            raise HTTPException(429, "too many requests at once. Wait a second.")
        return user

    def forget(self) -> None:
        """Read the people anew at the next request."""
        self._read_at = float("-inf")


async def user_of(request: Request) -> User:
    """The user who makes a request."""
    door: Doorkeeper = request.app.state.door
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    token = given.strip() if kind.lower() == "bearer" else request.cookies.get(door.cookie)
    return await door.user(token, request.client.host if request.client else "")


async def owner_of(user: Annotated[User, Depends(user_of)]) -> User:
    """The user who makes a request, if they own the campaign."""
    if user.role != OWNER:
        raise HTTPException(403, "only an owner of the campaign may do this.")
    return user


Someone = Annotated[User, Depends(user_of)]
Owner = Annotated[User, Depends(owner_of)]
