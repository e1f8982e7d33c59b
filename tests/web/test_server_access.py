"""Tokens and sessions of the database, as a server meets them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.web_client import Client
from tsuzuki.model.access import Right, Role
from tsuzuki.web.server import Address, WebServer
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


def test_without_users_this_machine_needs_no_token_and_with_one_it_does(
    application: Application, url: str
) -> None:
    assert status(url, None) == 200
    application.users.add("ada", "correct horse battery", role=Role.ADMIN, by=application.principal)
    assert status(url, None) == 401


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
    assert status(url, made.text[:-1] + "x") == 401
    application.tokens.revoke(made.token.id, by=application.principal)
    assert status(url, made.text) == 401


def test_a_wrong_token_is_refused_although_none_would_be_needed(url: str) -> None:
    assert status(url, "tsz_wrong") == 401
