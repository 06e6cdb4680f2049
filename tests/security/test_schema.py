"""Schemathesis over the whole OpenAPI schema: whatever is sent, no fault of ours, nothing told, nothing changed.

Owners' requests may change things, so they are held to the first two only; a stranger's and a foreign page's to all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from guarding import SECRET, Guarded
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.python import asgi

N_EXAMPLES = 8
QUICK = settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


Calls = Callable[[GenerationMode, Callable[[Any, Any], None]], int]


@pytest.fixture
def every_call(guarded: Guarded) -> Iterator[Calls]:
    """Calls every operation of the schema with made-up, valid or invalid, parameters; how many calls there were."""
    schema = schemathesis.openapi.from_dict(guarded.app.openapi())
    schema.app = guarded.app
    with asgi.get_client(guarded.app) as client:

        def called(mode: GenerationMode, check: Callable[[Any, Any], None]) -> int:
            n_calls = 0
            for found in schema.get_all_operations():
                operation = found.ok()

                @QUICK
                @given(case=operation.as_strategy(generation_mode=mode))
                def call(case: Any) -> None:
                    nonlocal n_calls
                    n_calls += 1
                    check(case, client)

                with suppress(Unsatisfiable):  # what takes no parameters cannot be called wrongly
                    call()
            return n_calls

        yield called


@pytest.fixture(params=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
def mode(request: pytest.FixtureRequest) -> GenerationMode:
    return request.param


def quiet(reply: Any) -> None:
    """No fault of ours, and nothing told that is not for others."""
    assert reply.status_code < 500, reply.text
    assert SECRET not in reply.content
    assert b"Traceback" not in reply.content


def test_owners_find_no_fault(guarded: Guarded, every_call: Calls, mode: GenerationMode) -> None:
    headers, codes = guarded.headers("olga"), set[int]()

    def check(case: Any, client: Any) -> None:
        reply = case.call(session=client, headers=headers)
        codes.add(reply.status_code)
        quiet(reply)

    assert every_call(mode, check) > 50
    assert 422 in codes or 200 in codes


def test_annotators_change_answers_and_flags_and_nothing_else(
    guarded: Guarded, every_call: Calls, mode: GenerationMode
) -> None:
    before, headers = guarded.rows(), guarded.headers("ann")
    assert every_call(mode, lambda case, client: quiet(case.call(session=client, headers=headers))) > 50
    after = guarded.rows()
    may_change = ("answers", "answer_log", "votes", "flags")
    assert {name: rows for name, rows in after.items() if name not in may_change} == {
        name: rows for name, rows in before.items() if name not in may_change
    }
    assert {row[3] for row in after["votes"]} <= {"ann"}


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Mqnet": "1"}, {"X-Mqnet": "1", "Authorization": "Bearer nobody's"}],
    ids=["nothing", "header", "token"],
)
def test_strangers_get_nothing(guarded: Guarded, every_call: Calls, mode: GenerationMode, headers: Any) -> None:
    before = guarded.rows()

    def check(case: Any, client: Any) -> None:
        reply = case.call(session=client, headers=headers)
        quiet(reply)
        assert reply.status_code in (400, 401, 403, 404, 405, 413, 422, 429), reply.text
        assert set(reply.json()) == {"error"}

    assert every_call(mode, check) > 50
    assert guarded.rows() == before


def test_foreign_pages_change_nothing(guarded: Guarded, every_call: Calls, mode: GenerationMode) -> None:
    before = guarded.rows()
    headers = guarded.headers("olga", Origin="http://evil.example")

    def check(case: Any, client: Any) -> None:
        reply = case.call(session=client, headers=headers)
        quiet(reply)
        assert case.method == "GET" or reply.status_code == 403, reply.text

    assert every_call(mode, check) > 50
    assert guarded.rows() == before
