"""Users: names and passwords, what changes with a role, and the last admin who stays."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from services.access.conftest import LOCAL, PASSWORD, PLACE
from support.dialects import only_on_postgresql
from support.threads import TIMEOUT_SECONDS, at_once, in_background
from support.waiting import wait_until_blocked
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.errors import (
    Conflict,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    TsuzukiError,
    UsageError,
)
from tsuzuki.services.access.sessions import Sessions
from tsuzuki.services.access.tokens import Tokens
from tsuzuki.services.access.users import Users
from tsuzuki.store import audit
from tsuzuki.store.access import users as stored_users
from tsuzuki.store.schema.tables import audit_log
from tsuzuki.store.sql.database import Database

OTHER_PASSWORD = "another sentence of words"


def code_of(error: pytest.ExceptionInfo[TsuzukiError]) -> str:
    return error.value.specific_code


def test_a_user_is_known_by_its_name_in_any_case(users: Users, sessions: Sessions) -> None:
    assert not users.any()
    added = users.add("Ada", PASSWORD, role=Role.ADMIN, by=LOCAL)
    assert users.any()
    assert (added.name, added.role, added.created_by) == ("ada", Role.ADMIN, "cli:root")
    with pytest.raises(Conflict) as taken:
        users.add("ADA", PASSWORD, role=Role.VIEWER, by=LOCAL)
    assert code_of(taken) == "user_exists"
    assert sessions.sign_in("aDa", PASSWORD, place=PLACE).principal.role is Role.ADMIN


def test_no_password_is_stored_or_shown(users: Users, ada: Principal, database: Database) -> None:
    users.set_password("ada", OTHER_PASSWORD, by=LOCAL)
    with database.read() as connection:
        rows = str(connection.execute(select(audit_log)).all())
    assert "argon2" not in f"{rows} {users.find(by=LOCAL)!r}"
    assert PASSWORD not in rows
    assert OTHER_PASSWORD not in rows


@pytest.mark.parametrize(
    "password", ["", "short", "x" * 12, "ada" * 5, "x" * 1025, "with half \ud800 a pair"]
)
def test_a_password_that_is_too_easy_or_no_text_is_refused(users: Users, password: str) -> None:
    with pytest.raises(UsageError) as refused:
        users.add("ada", password, role=Role.ADMIN, by=LOCAL)
    assert code_of(refused) == "password_refused"
    assert not password or password not in str(refused.value.as_dict())
    assert not users.any()


def test_only_one_who_manages_access_changes_others(
    users: Users, ada: Principal, bob: Principal
) -> None:
    assert [user.name for user in users.find(by=bob)] == ["bob"]
    assert [user.name for user in users.find(by=ada)] == ["ada", "bob"]
    with pytest.raises(NotFound):
        users.get("ada", by=bob)
    with pytest.raises(NotFound):
        users.set_password("ada", OTHER_PASSWORD, by=bob)
    for change in (
        lambda: users.add("cat", PASSWORD, role=Role.VIEWER, by=bob),
        lambda: users.set_role("bob", Role.OPERATOR, by=bob),
        lambda: users.disable("ada", by=bob),
        lambda: users.enable("ada", by=bob),
        lambda: users.remove("ada", by=bob),
    ):
        with pytest.raises(NotPermitted) as refused:
            change()
        assert code_of(refused) == "right_missing"


def test_a_narrowed_principal_cannot_take_over_one_that_has_more_rights(
    users: Users, ada: Principal, bob: Principal
) -> None:
    narrowed = replace(ada, scopes=frozenset({Right.ACCESS_MANAGE, Right.ACCESS_OWN}))
    for change in (
        lambda: users.set_password("bob", OTHER_PASSWORD, by=narrowed),
        lambda: users.set_password("ada", OTHER_PASSWORD, by=narrowed, current=PASSWORD),
        lambda: users.add("cat", PASSWORD, role=Role.VIEWER, by=narrowed),
        lambda: users.set_role("bob", Role.ADMIN, by=narrowed),
        lambda: users.disable("bob", by=narrowed),
        lambda: users.remove("bob", by=narrowed),
    ):
        with pytest.raises(NotPermitted) as refused:
            change()
        assert code_of(refused) == "grant_refused"


def test_ones_own_password_needs_the_current_one(
    users: Users, sessions: Sessions, bob: Principal
) -> None:
    with pytest.raises(UsageError) as refused:
        users.set_password("bob", OTHER_PASSWORD, by=bob)
    assert code_of(refused) == "password_missing"
    for _ in range(10):
        with pytest.raises(NotAuthenticated) as wrong:
            users.set_password("bob", OTHER_PASSWORD, by=bob, current="wrong password")
        assert code_of(wrong) == "password_wrong"
    with pytest.raises(NotAuthenticated) as limited:
        users.set_password("bob", OTHER_PASSWORD, by=bob, current=PASSWORD)
    assert code_of(limited) == "sign_in_limited"


def test_a_new_password_ends_every_session_but_ones_own(
    users: Users, sessions: Sessions, bob: Principal
) -> None:
    other = sessions.sign_in("bob", PASSWORD, place=PLACE)
    users.set_password("bob", OTHER_PASSWORD, by=bob, current=PASSWORD)
    assert [session.id for session in sessions.find(by=bob)] == [bob.session_id]
    with pytest.raises(NotAuthenticated) as ended:
        sessions.authenticate(other.secret)
    assert code_of(ended) == "session_unknown"
    with pytest.raises(NotAuthenticated):
        sessions.sign_in("bob", PASSWORD, place=PLACE)
    sessions.sign_in("bob", OTHER_PASSWORD, place=PLACE)


def test_of_two_that_set_a_password_at_once_each_ends_whole(
    users: Users, sessions: Sessions, ada: Principal, bob: Principal
) -> None:
    """A sign-in with the old password leaves no session behind a new one."""

    def act(number: int) -> str | None:
        try:
            if number == 0:
                users.set_password("bob", OTHER_PASSWORD, by=ada)
                return None
            return sessions.sign_in("bob", PASSWORD, place=PLACE).secret
        except NotAuthenticated:
            return None

    secrets = [secret for secret in at_once(4, act) if secret]
    for secret in secrets:
        with pytest.raises(NotAuthenticated):
            sessions.authenticate(secret)


def test_the_last_admin_cannot_be_removed_disabled_or_demoted(
    users: Users, ada: Principal, bob: Principal
) -> None:
    for change in (
        lambda: users.remove("ada", by=LOCAL),
        lambda: users.disable("ada", by=LOCAL),
        lambda: users.set_role("ada", Role.VIEWER, by=LOCAL),
    ):
        with pytest.raises(Conflict) as refused:
            change()
        assert code_of(refused) == "last_admin"
    users.set_role("ada", Role.ADMIN, by=LOCAL)
    users.set_role("bob", Role.ADMIN, by=ada)
    users.disable("bob", by=ada)
    with pytest.raises(Conflict):  # a disabled admin is none
        users.remove("ada", by=LOCAL)
    users.remove("bob", by=ada)


@pytest.mark.parametrize("how", ["set_role", "disable", "remove"])
def test_of_admins_that_depose_each_other_at_once_one_stays(
    how: str, users: Users, ada: Principal
) -> None:
    names = ["ada", "eve", "fay"]
    for name in names[1:]:
        users.add(name, PASSWORD, role=Role.ADMIN, by=ada)

    def depose(number: int) -> bool:
        try:
            match how:
                case "set_role":
                    users.set_role(names[number], Role.VIEWER, by=LOCAL)
                case "disable":
                    users.disable(names[number], by=LOCAL)
                case _:
                    users.remove(names[number], by=LOCAL)
        except Conflict:
            return False
        return True

    assert sorted(at_once(3, depose)) == [False, True, True]
    admins = [u for u in users.find(by=LOCAL) if u.role is Role.ADMIN and u.disabled_at is None]
    assert len(admins) == 1


def test_a_disabled_user_is_out_at_once_and_comes_back(
    users: Users, sessions: Sessions, ada: Principal, bob: Principal
) -> None:
    secret = sessions.sign_in("bob", PASSWORD, place=PLACE).secret
    assert users.disable("bob", by=ada).disabled_at is not None
    with pytest.raises(NotAuthenticated):
        sessions.authenticate(secret)
    with pytest.raises(NotAuthenticated) as refused:
        sessions.sign_in("bob", PASSWORD, place=PLACE)
    assert code_of(refused) == "sign_in_refused"
    with pytest.raises(Conflict) as again:
        users.disable("bob", by=ada)
    assert code_of(again) == "user_state"
    users.enable("bob", by=ada)
    with pytest.raises(Conflict):
        users.enable("bob", by=ada)
    sessions.sign_in("bob", PASSWORD, place=PLACE)


def test_every_change_is_audited_with_its_actor(
    users: Users, tokens: Tokens, ada: Principal, bob: Principal, database: Database
) -> None:
    tokens.create("of-bob", by=bob, role=Role.VIEWER)
    users.set_role("bob", Role.VIEWER, by=ada)
    users.set_password("bob", OTHER_PASSWORD, by=ada)
    users.disable("bob", by=ada)
    users.enable("bob", by=ada)
    users.remove("bob", by=ada)
    with database.read() as connection:
        entries = audit.find(connection, object_type="user", object_id="bob")
    assert {entry.actor for entry in entries} == {"user:ada"}
    assert [(entry.action, entry.before, entry.after) for entry in reversed(entries)] == [
        ("user.add", None, {"role": "operator", "disabled": False}),
        (
            "user.set_role",
            {"role": "operator", "disabled": False},
            {"role": "viewer", "disabled": False},
        ),
        ("user.set_password", None, None),
        (
            "user.disable",
            {"role": "viewer", "disabled": False},
            {"role": "viewer", "disabled": True},
        ),
        (
            "user.enable",
            {"role": "viewer", "disabled": True},
            {"role": "viewer", "disabled": False},
        ),
        ("user.remove", {"role": "viewer", "disabled": False, "tokens": ["of-bob"]}, None),
    ]


def test_an_unknown_user_is_guessed_at(users: Users, ada: Principal) -> None:
    with pytest.raises(NotFound) as unknown:
        users.get("aba", by=ada)
    assert 'Did you mean "ada"?' in (unknown.value.hint or "")
    for name in ("", "a b", "ü", "a\x00b"):
        with pytest.raises(UsageError) as refused:
            users.get(name, by=ada)
        assert code_of(refused) == "user_name"


@only_on_postgresql
def test_a_password_is_not_set_for_a_user_who_is_being_promoted(
    users: Users, database: Database, bob: Principal
) -> None:
    """Who may not sign in as an admin must not choose the password of one. On SQLite one writer waits for the other."""
    assert bob.user_id is not None
    with database.write() as connection:
        stored_users.lock(connection)
        stored_users.set_role(connection, bob.user_id, Role.ADMIN)
        setting = in_background(
            lambda: users.set_password("bob", OTHER_PASSWORD, by=bob, current=PASSWORD)
        )
        wait_until_blocked(database)
    with pytest.raises(NotPermitted) as refused:
        setting.result(TIMEOUT_SECONDS)
    assert code_of(refused) == "grant_refused"
