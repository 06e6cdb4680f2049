"""Who is let in, what is served, what is refused: and that what is refused changes nothing and tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from guarding import ITEMS, NAMED_LIKE_PATHS, SECRET, Guarded

from mqnet.server.guard import MOST_BYTES

PATHS = ["campaign", "state", "next", "history", "dashboard", "review", "people", "items/i0.png", "items/i0.png/image"]
OWNERS = ["review", "people"]
POSTS = ["answers", "undo", "flags", "people", "people/ann/revoke"]
ANSWER = {"item": "i0.png", "answer": {"kind": "known", "name": "cat"}, "key": "a" * 12}
BODIES = {
    "answers": {"answers": [ANSWER]},
    "undo": {},
    "flags": {"item": "i0.png", "flagged": True},
    "people": {"name": "eve"},
    "people/ann/revoke": {},
}


@pytest.mark.parametrize("token", [None, "", "nobody's", "a" * 10_000, "\u00e9\u00ff"])
def test_without_a_token_there_is_nothing(guarded: Guarded, token: str | None) -> None:
    before = guarded.rows()
    headers: dict[str, str | bytes] = {"X-Mqnet": "1"} | (
        {} if token is None else {"Authorization": f"Bearer {token}".encode("latin-1")}
    )
    replies = [guarded.client.get(f"/api/{path}", headers=headers) for path in PATHS]
    replies += [guarded.client.post(f"/api/{path}", json=BODIES[path], headers=headers) for path in POSTS]
    replies.append(guarded.client.get("/login", params={"token": token or "x"}))
    assert {reply.status_code for reply in replies} == {401}
    assert all("set-cookie" not in reply.headers and set(reply.json()) == {"error"} for reply in replies)
    assert guarded.rows() == before


def test_a_revoked_token_and_a_token_of_another_campaign_open_nothing(guarded: Guarded) -> None:
    owner = guarded.headers("olga")
    assert guarded.client.get("/api/state", headers=guarded.headers("ann")).status_code == 200
    assert guarded.client.post("/api/people/ann/revoke", json={}, headers=owner).status_code == 200
    assert guarded.client.get("/api/state", headers=guarded.headers("ann")).status_code == 401


def test_who_tries_many_tokens_is_told_to_wait(guarded: Guarded) -> None:
    codes = [guarded.client.get("/login", params={"token": f"guess{i}"}).status_code for i in range(80)]
    assert (codes[0], codes[-1]) == (401, 429)
    # and those who belong here are not kept out by it
    assert guarded.client.get("/api/state", headers=guarded.headers("ann")).status_code == 200


def test_an_annotator_is_no_owner(guarded: Guarded) -> None:
    before = guarded.rows()
    headers = guarded.headers("ann")
    replies = [guarded.client.get(f"/api/{path}", headers=headers) for path in OWNERS]
    replies += [
        guarded.client.post(f"/api/{path}", json=BODIES[path], headers=headers) for path in ("people", POSTS[-1])
    ]
    deciding = {"answers": [{**ANSWER, "view": "review"}]}
    replies.append(guarded.client.post("/api/answers", json=deciding, headers=headers))
    assert {reply.status_code for reply in replies} == {403}
    assert guarded.rows() == before
    assert "votes" not in guarded.client.get("/api/items/i0.png", headers=headers).json()


@pytest.mark.parametrize(
    "foreign",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "http://testserver:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Mqnet": ""},
    ],
)
@pytest.mark.parametrize("path", POSTS)
def test_a_foreign_page_changes_nothing(guarded: Guarded, foreign: dict[str, str], path: str) -> None:
    before = guarded.rows()
    reply = guarded.client.post(f"/api/{path}", json=BODIES[path], headers={**guarded.headers("olga"), **foreign})
    assert reply.status_code == 403
    assert guarded.rows() == before


def test_no_page_may_be_framed_or_read_from_elsewhere(guarded: Guarded) -> None:
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    replies = [guarded.client.get(path) for path in ("/", "/dashboard", "/static/label.js", "/api/state", "/nothing")]
    replies.append(guarded.client.options("/api/answers", headers=preflight))
    replies.append(guarded.client.post("/api/answers", content=b"x" * (MOST_BYTES + 1)))
    for reply in replies:
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "'unsafe-inline'" not in reply.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert not any(name.startswith("access-control") for name in reply.headers)


def test_the_cookie_is_the_browsers_alone(guarded: Guarded) -> None:
    reply = guarded.client.get("/login", params={"token": guarded.tokens["ann"]})
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert guarded.tokens["ann"] not in reply.text
    assert guarded.client.get("/api/campaign").json()["user"] == {"name": "ann", "role": "annotator"}
    # a form on another site sends the cookie of a lax browser, but cannot send the header
    assert guarded.client.post("/api/undo", json={}).status_code == 403


def test_a_token_is_nowhere_in_the_folder_but_in_its_owners_file(guarded: Guarded) -> None:
    files = [path for path in guarded.folder.rglob("*") if path.is_file()]
    for token in guarded.tokens.values():
        assert not [path for path in files if token.encode() in path.read_bytes()]


# -- paths

CLIMBS = ["../secret.txt", "../../secret.txt", "/etc/passwd", "notes.txt", "out/secret.png", "out/secret.txt", ".."]
CLIMBS += ["....//secret.txt", "..\\secret.txt", "i0.png/../notes.txt", "i0.png\x00.txt", "%2e%2e%2fsecret.txt"]


def addresses(climb: str) -> Iterator[str]:
    once = quote(climb, safe="")
    for spelt in (quote(climb), once, quote(once, safe=""), once.replace(".", "%2e")):
        yield f"/api/items/{spelt}"
        yield f"/api/items/{spelt}/image"
        yield f"/static/{spelt}"
        yield f"/{spelt}"


@pytest.mark.parametrize("climb", CLIMBS)
def test_nothing_but_the_pools_images_is_served(guarded: Guarded, climb: str) -> None:
    for address in addresses(climb):
        reply = guarded.client.get(address, headers=guarded.headers("olga"))
        if reply.status_code == 200 and reply.url.path in ("", "/"):
            continue  # the client went up itself: this is the labelling page
        is_item = address.startswith("/api/items/") and not address.endswith("/image") and reply.status_code == 200
        assert reply.status_code in (404, 405) or (is_item and reply.json()["id"] in NAMED_LIKE_PATHS), address
        assert SECRET not in reply.content
        assert b"root:" not in reply.content


def test_an_item_called_like_a_path_is_no_path(guarded: Guarded) -> None:
    for item in NAMED_LIKE_PATHS[:3]:
        reply = guarded.client.get(f"/api/items/{quote(item, safe='')}/image", headers=guarded.headers("olga"))
        assert (reply.status_code, set(reply.json())) == (404, {"error"})
    strange = guarded.client.get(
        f"/api/items/{quote(NAMED_LIKE_PATHS[-1], safe='')}/image", headers=guarded.headers("ann")
    )
    assert (strange.status_code, strange.headers["content-type"]) == (200, "image/png")


@pytest.mark.parametrize(
    "path", ["/static", "/static/", "/api", "/api/", "/api/items/", "/campaign.db", "/owner.token"]
)
def test_no_folder_is_listed(guarded: Guarded, path: str) -> None:
    reply = guarded.client.get(path, headers=guarded.headers("olga"), follow_redirects=False)
    assert reply.status_code in (404, 307)
    assert b"label.js" not in reply.content


# -- bodies


def test_a_replayed_answer_changes_nothing(guarded: Guarded) -> None:
    def post(who: str, **changes: object) -> int:
        return guarded.client.post(
            "/api/answers", json={"answers": [{**ANSWER, **changes}]}, headers=guarded.headers(who)
        ).status_code

    assert post("ann") == 200
    before = guarded.rows()
    assert post("ann") == 200  # as sent
    assert post("ann", answer={"kind": "ood"}) == 200  # with another answer: the key says it is the one from before
    assert post("ann", item="i1.png") == 422  # for another item
    assert post("bob") == 422  # by somebody else
    assert guarded.rows() == before


def pieces(n_bytes: int, sent: list[int]) -> Iterator[bytes]:
    piece = b"x" * 65_536
    while sent[0] < n_bytes:
        sent[0] += len(piece)
        yield piece


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("path", POSTS)
def test_a_hundred_megabytes_are_refused(guarded: Guarded, path: str, announced: bool) -> None:
    before, size = guarded.rows(), 100 * 1024 * 1024
    headers = guarded.headers("olga", **({"Content-Length": str(size)} if announced else {}))
    content = b'{"answers": [' if announced else pieces(2 * 1024 * 1024, [0])
    reply = guarded.client.post(f"/api/{path}", content=content, headers=headers)
    assert reply.status_code == 413
    assert "64 KiB" in reply.json()["error"]
    assert guarded.rows() == before


NONSENSE = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"answers": []}', b"[" * 30_000, b'{"answers": [{"item": NaN}]}']
NONSENSE += [b'{"answers": [{"item": "i0.png", "answer": {"kind": "known", "name": "zebra"}, "key": "aaaaaaaaaaaa"}]}']
NONSENSE += [b'{"answers": [{"item": "i0.png", "answer": {"kind": "ood"}, "key": "aaaaaaaaaaaa", "seconds": 1e999}]}']
NONSENSE += [b'{"answers": [{"item": "\\ud800", "answer": {"kind": "ood"}, "key": "aaaaaaaaaaaa"}]}']
NONSENSE += [b'{"answers": [{"item": "i0\\u0000.png", "answer": {"kind": "ood"}, "key": "aaaaaaaaaaaa"}]}']
NONSENSE += [b'{"item": "\\ud800", "flagged": true}', b'{"item": "no such item", "flagged": true}']
NONSENSE += [b'{"name": "../eve"}', b'{"name": "eve", "role": "king"}', b'{"name": "\\ud800"}', b'{"name": "a, b"}']


@pytest.mark.parametrize("content", NONSENSE)
@pytest.mark.parametrize("path", POSTS)
def test_nonsense_is_refused_in_a_sentence(guarded: Guarded, path: str, content: bytes) -> None:
    before = guarded.rows()
    headers = guarded.headers("olga", **{"Content-Type": "application/json"})
    reply = guarded.client.post(f"/api/{path}", content=content, headers=headers)
    assert 400 <= reply.status_code < 500, reply.text
    assert set(reply.json()) == {"error"}
    assert "Traceback" not in reply.text
    assert guarded.rows() == before


@pytest.mark.parametrize("item", ["\ud800", "i0\x00.png", "x" * 10_000])
def test_strange_items_are_not_found(guarded: Guarded, item: str) -> None:
    spelt = quote(item.encode("utf-8", "surrogatepass"), safe="")
    for path in (f"/api/items/{spelt}", f"/api/items/{spelt}/image"):
        assert guarded.client.get(path, headers=guarded.headers("ann")).status_code in (404, 414, 422)


def test_the_budgets_unit_is_the_campaigns(guarded: Guarded) -> None:
    assert guarded.client.get("/api/campaign", headers=guarded.headers("ann")).json()["budget_unit"] == "minutes"
    assert ITEMS[0] in {
        i["id"] for i in guarded.client.get("/api/next", headers=guarded.headers("ann")).json()["items"]
    }
