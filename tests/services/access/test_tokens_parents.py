"""A token that was made with a token ends with it: revoked together, over any number of levels."""

import pytest

from services.access.conftest import LOCAL
from support.dialects import only_on_postgresql
from support.threads import in_background
from support.waiting import wait_until_blocked
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.errors import NotAuthenticated, NotFound
from tsuzuki.services.access.tokens import CreatedToken, Tokens
from tsuzuki.store import audit
from tsuzuki.store.access import tokens as stored_tokens
from tsuzuki.store.sql.database import Database

PAIRS = [(parent, child) for parent in Role for child in Role if parent.includes(child)]
"""The roles that a token can have, and those that it can give."""


def made_with(
    tokens: Tokens, parent: CreatedToken, name: str, role: Role = Role.VIEWER
) -> CreatedToken:
    made = tokens.create(name, by=tokens.authenticate(parent.text), role=role)
    tokens.wait_for_writes()
    return made


def is_live(tokens: Tokens, token: CreatedToken) -> bool:
    return bool(tokens.live([token.token.id.removeprefix("tsz_")]))


def test_a_token_is_revoked_with_the_one_that_it_was_made_with(
    tokens: Tokens, ada: Principal, bob: Principal
) -> None:
    for parent_role, child_role in PAIRS:
        owner = bob if parent_role is not Role.ADMIN else ada
        for revoker in (None, owner, ada, LOCAL):
            parent = tokens.create("parent", by=owner, role=parent_role)
            child = made_with(tokens, parent, "child", child_role)
            assert child.token.parent == parent.token.id
            by = revoker or tokens.authenticate(parent.text)
            tokens.wait_for_writes()
            revoked = tokens.revoke("parent", by=by)
            assert (revoked.token.name, revoked.also) == ("parent", ["child"])
            with pytest.raises(NotAuthenticated) as refused:
                tokens.authenticate(child.text)
            assert refused.value.specific_code == "token_revoked"


def test_what_a_child_made_is_revoked_too_and_nothing_else(
    tokens: Tokens, database: Database
) -> None:
    first = tokens.create("first", by=LOCAL, role=Role.OPERATOR)
    second = made_with(tokens, first, "second", Role.OPERATOR)
    third = made_with(tokens, second, "third", Role.OPERATOR)
    fourth = made_with(tokens, third, "fourth")
    sibling = made_with(tokens, first, "sibling")
    other = tokens.create("other", by=LOCAL, role=Role.VIEWER)
    assert tokens.revoke("second", by=LOCAL).also == ["third", "fourth"]
    assert [is_live(tokens, token) for token in (second, third, fourth)] == [False] * 3
    assert [is_live(tokens, token) for token in (first, sibling, other)] == [True] * 3
    with database.read() as connection:
        entries = audit.find(connection, object_type="token")
    revoked = {entry.object_id for entry in entries if entry.action == "token.revoke"}
    assert revoked == {token.token.id for token in (second, third, fourth)}


def test_a_token_without_a_user_revokes_what_it_made_and_not_what_made_it(tokens: Tokens) -> None:
    own = [Right.ACCESS_OWN]
    parent = tokens.create("parent", by=LOCAL, role=Role.VIEWER, scopes=own)
    by_parent = tokens.authenticate(parent.text)
    child = tokens.create("child", by=by_parent, role=Role.VIEWER, scopes=own)
    by_child = tokens.authenticate(child.text)
    tokens.wait_for_writes()
    with pytest.raises(NotFound):
        tokens.revoke("parent", by=by_child)
    assert tokens.revoke("child", by=by_parent).also == []


def test_a_token_that_was_revoked_after_it_asked_makes_nothing(tokens: Tokens) -> None:
    parent = tokens.create("parent", by=LOCAL, role=Role.OPERATOR)
    by = tokens.authenticate(parent.text)
    tokens.wait_for_writes()
    tokens.revoke("parent", by=LOCAL)
    with pytest.raises(NotAuthenticated):
        tokens.create("child", by=by, role=Role.VIEWER)
    assert tokens.find(by=LOCAL) == []


@only_on_postgresql
def test_a_token_that_is_made_while_its_parent_is_revoked_is_revoked_too(
    tokens: Tokens, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tokens.create("first", by=LOCAL, role=Role.OPERATOR)
    second = made_with(tokens, first, "second", Role.OPERATOR)
    by = tokens.authenticate(second.text)
    tokens.wait_for_writes()
    add = stored_tokens.add
    revoking = []

    def add_slowly(connection, token):  # type: ignore[no-untyped-def]  # as `add`
        revoking.append(in_background(lambda: tokens.revoke("first", by=LOCAL)))
        wait_until_blocked(database)
        return add(connection, token)

    monkeypatch.setattr(stored_tokens, "add", add_slowly)
    third = tokens.create("third", by=by, role=Role.VIEWER)
    assert revoking[0].result(30).also == ["second", "third"]
    assert not is_live(tokens, third)
