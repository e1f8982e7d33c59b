"""`tsuzuki user`: a password never comes as an argument, and the last admin stays."""

import io
import sys
from typing import Any

import click
import pytest

from support.workspace import Ended, Workspace
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.services.access.sessions import SignInPlace
from tsuzuki.wiring.application import opened

PASSWORD = "correct horse battery"


@pytest.fixture
def typed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> "TypedPasswords":
    return TypedPasswords(workspace, monkeypatch)


class TypedPasswords:
    """Commands with a password on stdin."""

    def __init__(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workspace = workspace
        self.monkeypatch = monkeypatch

    def run(self, *words: str, stdin: str = f"{PASSWORD}\n") -> Ended:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        return self.workspace.run(*words, "--password-stdin")


def can_sign_in(workspace: Workspace, name: str, password: str) -> bool:
    with opened(cwd=workspace.folder, environ={}) as application:
        try:
            application.sessions.sign_in(name, password, place=SignInPlace(address=None))
        except NotAuthenticated:
            return False
    return True


def test_a_user_is_added_listed_and_can_sign_in(
    workspace: Workspace, typed: TypedPasswords
) -> None:
    added = typed.run("user", "add", "Ada", "--role", "admin", stdin=f"{PASSWORD}\r\nmore\n")
    assert (added.code, added.out) == (0, "")
    assert added.err == "User 'ada' can now sign in as admin.\n"
    assert can_sign_in(workspace, "ada", PASSWORD)
    heading, row = workspace.ok("user", "ls").out.splitlines()
    assert heading.split()[:3] == ["NAME", "ROLE", "STATE"]
    assert row.split()[:3] == ["ada", "admin", "enabled"]
    (listed,) = workspace.data("user", "ls")
    assert "password_hash" not in listed
    assert listed["created_by"].startswith("cli:")
    assert PASSWORD not in workspace.ok("audit", "ls", "-o", "json").out


def test_a_new_password_replaces_the_old_one(workspace: Workspace, typed: TypedPasswords) -> None:
    typed.run("user", "add", "ada", "--role", "admin")
    changed = typed.run("user", "passwd", "ada", "-o", "json", stdin="another sentence of words\n")
    assert (changed.code, changed.data["name"]) == (0, "ada")
    assert not can_sign_in(workspace, "ada", PASSWORD)
    assert can_sign_in(workspace, "ada", "another sentence of words")


def test_roles_and_states_change_and_the_last_admin_stays(
    workspace: Workspace, typed: TypedPasswords
) -> None:
    typed.run("user", "add", "ada", "--role", "admin")
    typed.run("user", "add", "bob")
    assert workspace.data("user", "role", "bob", "operator")["role"] == "operator"
    assert workspace.data("user", "disable", "bob")["disabled_at"] is not None
    assert workspace.data("user", "enable", "bob")["disabled_at"] is None
    for words in (["rm", "ada", "--yes"], ["disable", "ada"], ["role", "ada", "viewer"]):
        refused = workspace.run("user", *words, "-o", "json")
        assert (refused.code, refused.error["code"]) == (6, "last_admin")
    assert workspace.data("user", "rm", "bob", "--yes")["name"] == "bob"
    assert [user["name"] for user in workspace.data("user", "ls")] == ["ada"]


def test_without_a_terminal_a_password_is_not_asked_for(workspace: Workspace) -> None:
    refused = workspace.run("user", "add", "ada", "-o", "json")
    assert (refused.code, refused.error["code"]) == (2, "password_missing")
    assert "--password-stdin" in refused.error["hint"]


@pytest.mark.parametrize(
    ("words", "stdin", "exit_code", "code"),
    [
        (["add", "a b"], f"{PASSWORD}\n", 2, "user_name"),
        (["add", "ada"], "", 2, "password_missing"),
        (["add", "ada"], "\n", 2, "password_missing"),
        (["add", "ada"], "short\n", 2, "password_refused"),
        (["passwd", "cat"], f"{PASSWORD}\n", 4, "user_not_found"),
    ],
)
def test_what_cannot_be_is_told_and_adds_no_user(
    words: list[str],
    stdin: str,
    exit_code: int,
    code: str,
    workspace: Workspace,
    typed: TypedPasswords,
) -> None:
    refused = typed.run("user", *words, "-o", "json", stdin=stdin)
    assert (refused.code, refused.error["code"]) == (exit_code, code)
    assert workspace.data("user", "ls") == []


def test_a_password_is_asked_for_at_a_terminal_without_showing_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(prompt: str, **options: object) -> str:
        asked.append(prompt)
        assert options["hide_input"] is True
        assert options["confirmation_prompt"] is True
        check: Any = options["value_proc"]
        with pytest.raises(click.UsageError, match="at least 12 characters"):  # and asked again
            check("short")
        return str(check(PASSWORD))

    monkeypatch.setattr("tsuzuki.cli.access.password_input.is_terminal", lambda _stream: True)
    monkeypatch.setattr("click.prompt", answer)
    workspace.ok("user", "add", "ada", "--role", "admin")
    assert asked == ["Password for ada"]
    assert can_sign_in(workspace, "ada", PASSWORD)


def test_a_user_or_worker_that_is_not_there_is_told_before_any_question(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.cli.terminal.confirmation.is_terminal", lambda _stream: True)
    for words in (("user", "rm", "ada"), ("worker", "detach", "ada")):
        assert workspace.run(*words).code == 4
