"""Tokens and sessions of the database, as a server meets them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.concurrency import run_in_threadpool

from support.moving_clock import MovingClock
from support.web_client import Client
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request
from tsuzuki.web.security.authentication import PROXY_HEADERS
from tsuzuki.web.server import Address, WebServer
from tsuzuki.web.waiting import RunWaits
from tsuzuki.wiring.application import Application, opened


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    with opened(environ={}, cwd=tmp_path) as application:
        yield application


@pytest.fixture
def url(application: Application) -> Iterator[str]:
    server = WebServer(application, Address(host="127.0.0.1", port=0))
    server.start()
    yield server.url
    server.stop()


def status(url: str, token: str | None, path: str = "jobs") -> int:
    return Client(url, token).get(path).status


@pytest.mark.parametrize("header", PROXY_HEADERS)
def test_through_a_proxy_a_token_is_needed_in_any_case(url: str, header: str) -> None:
    answer = Client(url, None).request("GET", "jobs", headers={header: "1.1 proxy"})
    assert (answer.status, answer.code) == (401, "not_authenticated")


def test_a_token_opens_what_its_scopes_say_until_it_is_revoked(
    application: Application, url: str
) -> None:
    made = application.tokens.create(
        "ci",
        role=Role.OPERATOR,
        scopes=frozenset({Right.JOBS_READ}),
        by=application.principal,
    )
    assert (status(url, made.text), status(url, made.text, "runs")) == (200, 403)
    assert status(url, made.text[:-1] + ("x" if made.text[-1] != "x" else "y")) == 401
    application.tokens.revoke(made.token.id, by=application.principal)
    assert status(url, made.text) == 401


def test_a_token_with_any_scope_revokes_itself_and_learns_nothing_of_others(
    application: Application, url: str
) -> None:
    by = application.principal
    ada = application.users.add("ada", "correct horse battery", role=Role.ADMIN, by=by)
    principal = Principal(actor="user:ada", role=Role.ADMIN, user_id=ada.id)
    application.tokens.create("deploy", role=Role.OPERATOR, by=principal)
    leaked = application.tokens.create(
        "leaked", role=Role.OPERATOR, scopes=frozenset({Right.RUNS_READ}), by=principal
    )
    client = Client(url, leaked.text)
    for name in ("deploy", "deplo"):
        other = client.delete(f"tokens/{name}")
        assert (other.status, other.code) == (404, "token_not_found")
        assert other.json["hint"] == "See: tsuzuki token ls"
    assert client.delete(f"tokens/{leaked.token.id}").status == 200
    assert status(url, leaked.text, "runs") == 401
    assert [token.name for token in application.tokens.find(by=by)] == ["deploy"]


def test_who_waits_learns_nothing_of_the_run_after_the_token_was_revoked(
    application: Application, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.jobs.define("hello", {"command": ["true"]})
    made = application.tokens.create("ci", role=Role.OPERATOR, by=application.principal)

    async def end_and_revoke(_waits: RunWaits, run_id: int, _seconds: float) -> None:
        def move() -> None:
            application.runs.cancel(run_id)
            application.tokens.revoke("ci", by=application.principal)

        await run_in_threadpool(move)

    monkeypatch.setattr(RunWaits, "wait", end_and_revoke)
    client = Client(url, made.text)
    start = client.post("jobs/hello/runs", Prefer="wait=30", Idempotency_Key="once")
    assert (start.status, start.json["state"]) == (201, "PENDING")
    assert application.runs.get(start.json["id"]).run.state is RunState.CANCELED
    again = application.tokens.create("ci", role=Role.OPERATOR, by=application.principal)
    run_id = application.runs.submit(Request(job="hello")).run_id
    waited = Client(url, again.text).get(f"runs/{run_id}/wait")
    assert (waited.status, waited.code) == (401, "not_authenticated")


def test_a_token_that_expired_or_whose_user_is_disabled_opens_nothing(tmp_path: Path) -> None:
    clock = MovingClock()
    with opened(environ={}, cwd=tmp_path, clock=clock) as application:
        ada = application.users.add(
            "ada", "correct horse battery", role=Role.ADMIN, by=application.principal
        )
        bob = application.users.add(
            "bob", "correct horse battery", role=Role.VIEWER, by=application.principal
        )
        by = {
            user.name: Principal(actor="x", role=user.role, user_id=user.id) for user in (ada, bob)
        }
        short = application.tokens.create(
            "short", role=Role.ADMIN, by=by["ada"], expires_in_seconds=60
        )
        of_bob = application.tokens.create("of-bob", role=Role.VIEWER, by=by["bob"])
        server = WebServer(application, Address(host="127.0.0.1", port=0))
        server.start()
        try:
            paths = ("jobs", "runs", "/metrics", "tokens")
            for path in paths:
                assert status(server.url, short.text, path) == 200
                assert status(server.url, of_bob.text, path) == 200
            clock.advance(61)
            application.users.disable("bob", by=application.principal)
            for path in paths:
                assert status(server.url, short.text, path) == 401
                assert status(server.url, of_bob.text, path) == 401
        finally:
            server.stop()


def test_a_wrong_token_is_refused_although_none_would_be_needed_and_logged(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert status(url, "tsz_wrong") == 401
    assert status(url, "tsz_wrong") == 401
    assert caplog.text.count("credentials_refused") == 1
    assert "tsz_wrong" not in caplog.text
