"""Who may answer: names, roles and tokens. Only a hash of a token is ever stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from mqnet.errors import InputError
from mqnet.store.campaign import CampaignStore
from mqnet.store.tables import users

OWNER, ANNOTATOR = "owner", "annotator"
ROLES = (OWNER, ANNOTATOR)
NAME = re.compile(r"[\w.@-]+(?: [\w.@-]+)*")
"""Letters, digits, `_ . @ -` and single spaces: ledgers join several names by commas."""
LONGEST = 40


@dataclass(frozen=True)
class User:
    """Somebody who works on a campaign."""

    name: str
    role: str
    created_at: float = 0.0
    revoked: bool = False


def digest(token: str) -> str:
    """What is stored of a token: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class People:
    """The users of a campaign."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store

    def everybody(self) -> list[User]:
        """Everybody, revoked ones included, oldest first."""
        with self._store.reading() as connection:
            rows = connection.execute(sa.select(users).order_by(users.c.created_at, users.c.name))
            return [User(r.name, r.role, r.created_at, r.revoked) for r in rows]

    def add(self, name: str, role: str = ANNOTATOR) -> str:
        """Let somebody in and return their token, shown this once; a revoked name comes back with a new one."""
        token = secrets.token_urlsafe(32)
        self._put(name, role, token, replace=False)
        return token

    def keep(self, name: str, role: str, token: str) -> None:
        """Let somebody in by this token, whatever theirs was before."""
        self._put(name, role, token, replace=True)

    def _put(self, name: str, role: str, token: str, *, replace: bool) -> None:
        if not NAME.fullmatch(name) or len(name) > LONGEST:
            raise InputError(
                f"{name!r} is not a usable name: letters, digits, single spaces and . _ @ -, "
                f"at most {LONGEST} characters."
            )
        if role not in ROLES:
            raise InputError(f"'{role}' is no role. Roles: {', '.join(ROLES)}.")
        row = {"name": name, "role": role, "token_hash": digest(token), "created_at": time.time(), "revoked": False}
        with self._store.writing() as connection:
            old = connection.execute(sa.select(users.c.revoked).where(users.c.name == name)).first()
            if old is not None and not old.revoked and not replace:
                raise InputError(f"'{name}' is among the people already. Revoke the name first to give it a new link.")
            connection.execute(users.delete().where(users.c.name == name))
            connection.execute(users.insert().values(**row))

    def revoke(self, name: str) -> None:
        """Let somebody in no longer; their answers stay. The last owner cannot go: nobody could undo it."""
        with self._store.writing() as connection:
            rows = {r.name: r for r in connection.execute(sa.select(users).where(~users.c.revoked))}
            if name not in rows:
                raise InputError(f"'{name}' is not among the people of this campaign.")
            if rows[name].role == OWNER and sum(row.role == OWNER for row in rows.values()) == 1:
                raise InputError(f"'{name}' is the only owner. Add another one first.")
            connection.execute(users.update().where(users.c.name == name).values(revoked=True))

    def hashes(self) -> list[tuple[str, User]]:
        """The token hash of everybody who may come in."""
        with self._store.reading() as connection:
            rows = connection.execute(sa.select(users).where(~users.c.revoked))
            return [(row.token_hash, User(row.name, row.role, row.created_at)) for row in rows]

    def known_by(self, token: str) -> User | None:
        """Whose token this is."""
        return known_among(self.hashes(), token)


def known_among(hashes: Iterable[tuple[str, User]], token: str) -> User | None:
    """Whose token this is. All hashes are compared, each in constant time: the time taken tells nothing."""
    given, found = digest(token), None
    for stored, user in hashes:
        if hmac.compare_digest(stored, given):
            found = user
    return found
