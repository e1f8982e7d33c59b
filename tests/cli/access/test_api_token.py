"""`tsuzuki token`: the token alone on stdout, once; and a clear answer to what cannot be."""

import pytest

from support.workspace import Workspace
from tsuzuki.model.credentials import token_id_of
from tsuzuki.wiring.application import opened


def test_a_token_is_printed_alone_and_works(workspace: Workspace) -> None:
    ended = workspace.ok("token", "create", "ci", "--role", "operator", "--expires-in", "30d")
    text = ended.out.removesuffix("\n")
    assert token_id_of(text) is not None
    assert ended.err.startswith("Save the token now: it will not be shown again. It expires on ")
    with opened(cwd=workspace.folder, environ={}) as application:
        assert application.tokens.authenticate(text).actor == "token:ci"
        application.tokens.wait_for_writes()
    listed = workspace.ok("token", "ls")
    assert text not in listed.out + workspace.ok("audit", "ls", "-o", "json").out
    assert listed.out.splitlines()[1].split()[:5] == [text[:14], "ci", "live", "operator", "all"]


def test_a_machine_reads_the_token_with_all_about_it(workspace: Workspace) -> None:
    scopes = ("--scope", "runs:read", "--scope", "jobs:read")
    made = workspace.data("token", "create", "ci", *scopes)
    assert made["token"].startswith(made["id"])
    assert (made["role"], made["state"]) == ("viewer", "live")
    assert made["scopes"] == made["rights"] == ["jobs:read", "runs:read"]
    assert workspace.ok("token", "create", "b", "-o", "plain").out.startswith("tsz_")
    (first, second) = workspace.data("token", "ls")
    assert (first["name"], second["name"]) == ("ci", "b")
    assert "token" not in first
    assert first["created_by"].startswith("cli:")


def test_a_token_is_revoked_with_yes_and_listed_with_all(workspace: Workspace) -> None:
    made = workspace.data("token", "create", "ci")
    asked = workspace.run("token", "revoke", made["token"], "-o", "json")
    assert (asked.code, asked.error["code"]) == (2, "not_confirmed")
    assert made["token"] not in asked.err
    told = workspace.ok("token", "revoke", "ci", "--yes").err
    assert told == f"Token 'ci' ({made['id']}) revoked.\n"
    assert (
        workspace.ok("token", "ls").err
        == "no tokens yet; create one with: tsuzuki token create NAME\n"
    )
    assert workspace.data("token", "ls", "--all")[0]["state"] == "revoked"


def test_the_tokens_that_are_revoked_with_one_are_named(workspace: Workspace) -> None:
    made = workspace.data("token", "create", "ci", "--role", "operator")
    first = made["id"]
    with opened(cwd=workspace.folder, environ={}) as application:
        for name in ("deploy", "watch"):
            by = application.tokens.authenticate(made["token"])
            made = {"token": application.tokens.create(name, by=by, role=by.role).text}
        application.tokens.wait_for_writes()
    asked = workspace.run("token", "revoke", "ci", "-o", "json")
    assert (asked.code, asked.error["code"]) == (2, "not_confirmed")
    assert f"revoke the token ci ({first}) and 2 created with it" in asked.error["message"]
    revoked = workspace.data("token", "revoke", "deploy", "--yes")
    assert (revoked["name"], revoked["also_revoked"]) == ("deploy", ["watch"])
    assert [token["name"] for token in workspace.data("token", "ls")] == ["ci"]


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["create", "a b"], 2, "token_name"),
        (["create", "ci", "--role", "owner"], 2, "usage"),
        (["create", "ci", "--scope", "jobs:write"], 2, "scope_refused"),
        (["create", "ci", "--expires-in", "soon"], 2, "duration"),
        (["create", "ci", "--expires-in", "1s"], 2, "token_lifetime"),
        (["create", "taken"], 6, "token_exists"),
        (["revoke", "takne", "--yes"], 4, "token_not_found"),
        (["revoke", "takne"], 4, "token_not_found"),
    ],
)
def test_what_cannot_be_is_told_and_changes_nothing(
    words: list[str], exit_code: int, code: str, workspace: Workspace
) -> None:
    workspace.ok("token", "create", "taken")
    before = workspace.data("token", "ls", "--all")
    ended = workspace.run("token", *words, "-o", "json")
    assert (ended.code, ended.error["code"]) == (exit_code, code)
    assert workspace.data("token", "ls", "--all") == before
