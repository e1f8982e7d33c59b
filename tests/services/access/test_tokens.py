"""Tokens: shown once, never more than their maker, and refused when they are over."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from services.access.conftest import LOCAL
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.credentials import hash_of, new_token
from tsuzuki.model.errors import Conflict, NotAuthenticated, NotFound, NotPermitted, UsageError
from tsuzuki.services.access.tokens import LIFETIME_DEFAULT_SECONDS, CreatedToken, Tokens
from tsuzuki.services.access.users import Users
from tsuzuki.store import audit
from tsuzuki.store.schema.access_tables import api_tokens
from tsuzuki.store.schema.tables import audit_log
from tsuzuki.store.sql.database import Database


def refusal_of(tokens: Tokens, text: str) -> str:
    with pytest.raises(NotAuthenticated) as refused:
        tokens.authenticate(text)
    assert not text or text not in f"{refused.value!r} {refused.value.as_dict()}"
    return refused.value.specific_code


def stored_text(database: Database) -> str:
    """Everything that the tables of tokens and of the audit log hold."""
    with database.read() as connection:
        rows = [connection.execute(select(table)).all() for table in (api_tokens, audit_log)]
    return str(rows)


def test_a_token_stands_for_its_role_narrowed_to_its_scopes(tokens: Tokens) -> None:
    made = tokens.create(
        "ci", by=LOCAL, role=Role.OPERATOR, scopes=[Right.RUNS_READ, Right.JOBS_OPERATE]
    )
    principal = tokens.authenticate(made.text)
    assert principal.rights_among(Right) == {Right.RUNS_READ, Right.JOBS_OPERATE}
    assert (principal.actor, principal.user_id) == ("token:ci", None)
    assert made.text.startswith(made.token.id)
    assert made.token.rights == principal.rights_among(Right)


def test_the_secret_is_stored_nowhere_and_in_no_text(tokens: Tokens, database: Database) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    tokens.revoke("ci", by=LOCAL)
    secret = made.text.removeprefix(made.token.id)
    everything = f"{stored_text(database)} {made!r} {made.token.as_dict()}"
    assert secret not in everything
    assert hash_of(made.text) in stored_text(database)


def test_a_text_that_is_no_token_is_unknown(tokens: Tokens) -> None:
    text = tokens.create("ci", by=LOCAL, role=Role.VIEWER).text
    mistyped = text[:-1] + ("a" if text[-1] != "a" else "b")
    others = ["", "tsz_", "\ud800" * 52, new_token().text]
    for broken in (text[:-1], text + "x", mistyped, text.upper(), *others):
        assert refusal_of(tokens, broken) == "token_unknown"


def test_the_right_id_with_another_secret_is_unknown(tokens: Tokens, database: Database) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    with database.write() as connection:
        connection.execute(api_tokens.update().values(secret_hash=hash_of("another")))
    assert refusal_of(tokens, made.text) == "token_unknown"


def test_a_token_expires_after_ninety_days_unless_told(tokens: Tokens, clock: MovingClock) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    clock.advance(LIFETIME_DEFAULT_SECONDS - 1)
    tokens.authenticate(made.text)
    tokens.wait_for_writes()
    clock.advance(1)
    assert refusal_of(tokens, made.text) == "token_expired"
    (listed,) = tokens.find(by=LOCAL)
    assert listed.state == "expired"
    assert tokens.live([listed.id.removeprefix("tsz_")]) == frozenset()


def test_a_revoked_token_is_refused_and_its_name_is_free(tokens: Tokens) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    with pytest.raises(Conflict) as taken:
        tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    assert taken.value.specific_code == "token_exists"
    revoked = tokens.revoke("ci", by=LOCAL).token
    assert (revoked.state, revoked.revoked_by) == ("revoked", "cli:root")
    assert refusal_of(tokens, made.text) == "token_revoked"
    second = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    tokens.authenticate(second.text)
    tokens.wait_for_writes()
    assert [t.id for t in tokens.find(by=LOCAL)] == [second.token.id]
    assert len(tokens.find(by=LOCAL, with_revoked=True)) == 2


@pytest.mark.parametrize("way", ["id", "id without prefix", "malformed"])
def test_a_token_is_revoked_by_its_id_too(tokens: Tokens, way: str) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    given = {
        "id": made.token.id,
        "id without prefix": made.token.id.removeprefix("tsz_"),
        "malformed": made.text,
    }[way]
    assert tokens.revoke(given, by=LOCAL).token.state == "revoked"
    with pytest.raises(Conflict) as again:
        tokens.revoke(made.token.id, by=LOCAL)
    assert again.value.specific_code == "token_state"


def test_an_unknown_token_is_guessed_at_and_a_secret_is_not_repeated(tokens: Tokens) -> None:
    tokens.create("deploy", by=LOCAL, role=Role.VIEWER)
    with pytest.raises(NotFound) as unknown:
        tokens.revoke("deplyo", by=LOCAL)
    assert 'Did you mean "deploy"?' in (unknown.value.hint or "")
    text = new_token().text
    with pytest.raises(NotFound) as unknown:
        tokens.revoke(text, by=LOCAL)
    assert text not in str(unknown.value.as_dict())


def test_nothing_is_granted_that_its_maker_has_not(tokens: Tokens, bob: Principal) -> None:
    with pytest.raises(NotPermitted) as refused:
        tokens.create("more", by=bob, role=Role.ADMIN)
    assert refused.value.specific_code == "grant_refused"
    assert "access:manage" in refused.value.message
    mine = tokens.create(
        "mine", by=bob, role=Role.OPERATOR, scopes=[Right.ACCESS_OWN, Right.RUNS_READ]
    )
    narrowed = tokens.authenticate(mine.text)
    tokens.wait_for_writes()
    with pytest.raises(NotPermitted):
        tokens.create("wider", by=narrowed, role=Role.OPERATOR, scopes=[Right.JOBS_READ])
    tokens.create("same", by=narrowed, role=Role.ADMIN, scopes=[Right.RUNS_READ])
    without = replace(bob, scopes=frozenset({Right.RUNS_READ}))
    with pytest.raises(NotPermitted) as refused:
        tokens.create("none", by=without, role=Role.OPERATOR, scopes=[Right.RUNS_READ])
    assert refused.value.specific_code == "right_missing"


def test_a_token_that_a_token_makes_does_not_outlive_it(tokens: Tokens, clock: MovingClock) -> None:
    short = tokens.create("short", by=LOCAL, role=Role.OPERATOR, expires_in_seconds=3600)
    clock.advance(1000)
    by = tokens.authenticate(short.text)
    made = tokens.create("made", by=by, role=Role.VIEWER)
    assert made.token.expires_at == short.token.expires_at
    shorter = tokens.create("shorter", by=by, role=Role.VIEWER, expires_in_seconds=60)
    assert shorter.token.expires_at < short.token.expires_at


def test_a_user_sees_and_revokes_only_tokens_of_its_own(
    tokens: Tokens, ada: Principal, bob: Principal
) -> None:
    tokens.create("of-ada", by=ada, role=Role.ADMIN)
    tokens.create("of-bob", by=bob, role=Role.OPERATOR)
    tokens.create("of-machine", by=LOCAL, role=Role.ADMIN)
    assert [t.name for t in tokens.find(by=bob)] == ["of-bob"]
    assert {t.name for t in tokens.find(by=ada)} == {"of-ada", "of-bob", "of-machine"}
    for other in ("of-ada", "of-machine"):
        with pytest.raises(NotFound) as unknown:
            tokens.revoke(other, by=bob)
        assert "of-ada" not in (unknown.value.hint or "")
    assert tokens.revoke("of-bob", by=ada).token.revoked_by == "user:ada"


def test_a_user_who_was_disabled_or_removed_at_this_moment_makes_no_token(
    tokens: Tokens, users: Users, ada: Principal, bob: Principal
) -> None:
    for change in (users.disable, users.remove):
        change("bob", by=ada)
        with pytest.raises(NotAuthenticated, match="deleted or disabled") as refused:
            tokens.create("late", by=bob, role=Role.VIEWER)
        assert refused.value.specific_code == "token_revoked"
    assert tokens.find(by=ada) == []


def test_a_token_without_a_user_sees_none_and_may_revoke_itself(tokens: Tokens) -> None:
    scopes = [Right.ACCESS_OWN]
    made = tokens.create("own", by=LOCAL, role=Role.VIEWER, scopes=scopes)
    principal = tokens.authenticate(made.text)
    tokens.wait_for_writes()
    assert tokens.find(by=principal) == []
    assert tokens.revoke("own", by=principal).token.revoked_by == "token:own"


def test_a_token_never_has_more_rights_than_its_user_has_now(
    tokens: Tokens, users: Users, ada: Principal, bob: Principal
) -> None:
    made = tokens.create("of-bob", by=bob, role=Role.OPERATOR)
    users.set_role("bob", Role.VIEWER, by=ada)
    assert tokens.authenticate(made.text).role is Role.VIEWER
    users.set_role("bob", Role.ADMIN, by=ada)
    assert tokens.authenticate(made.text).role is Role.OPERATOR
    tokens.wait_for_writes()
    users.disable("bob", by=ada)
    assert refusal_of(tokens, made.text) == "token_revoked"
    token_id = made.token.id.removeprefix("tsz_")
    assert tokens.live([token_id]) == frozenset()
    users.enable("bob", by=ada)
    assert tokens.live([token_id, "another"]) == {token_id}
    users.remove("bob", by=ada)
    assert refusal_of(tokens, made.text) == "token_unknown"


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "a\n", "ü", "x" * 101])
def test_a_name_that_cannot_be_one_is_refused(tokens: Tokens, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        tokens.create(name, by=LOCAL, role=Role.VIEWER)
    assert refused.value.specific_code == "token_name"


def test_scopes_and_expiry_are_checked(tokens: Tokens) -> None:
    for scopes in ([], [Right.JOBS_WRITE]):
        with pytest.raises(UsageError) as refused:
            tokens.create("ci", by=LOCAL, role=Role.OPERATOR, scopes=scopes)
        assert refused.value.specific_code == "scope_refused"
    for seconds in (0.0, -1.0, 59.0, 1e12, float("nan"), float("inf")):
        with pytest.raises(UsageError) as refused:
            tokens.create("ci", by=LOCAL, role=Role.VIEWER, expires_in_seconds=seconds)
        assert refused.value.specific_code == "token_lifetime"
    assert tokens.find(by=LOCAL) == []


def test_of_ten_that_create_a_name_at_once_one_does(tokens: Tokens, database: Database) -> None:
    def create(_number: int) -> CreatedToken | None:
        try:
            return tokens.create("ci", by=LOCAL, role=Role.VIEWER)
        except Conflict:
            return None

    made = [token for token in at_once(10, create) if token]
    assert len(made) == 1
    with database.read() as connection:
        (entry,) = audit.find(connection, object_type="token")
    assert (entry.action, entry.actor, entry.object_id) == (
        "token.create",
        "cli:root",
        made[0].token.id,
    )


def test_the_last_use_is_written_once_a_minute(tokens: Tokens, clock: MovingClock) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)

    def last_use_after(seconds: float) -> object:
        clock.advance(seconds)
        tokens.authenticate(made.text)
        tokens.wait_for_writes()
        return tokens.find(by=LOCAL)[0].last_used_at

    first = last_use_after(0)
    assert first == clock.now()
    assert last_use_after(59) == first
    assert last_use_after(2) == clock.now()


def test_a_request_does_not_wait_for_the_write_of_its_last_use(
    tokens: Tokens, database: Database
) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)
    with database.write() as connection:
        # On SQLite this holds the writer, on PostgreSQL the row.
        connection.execute(api_tokens.update().values(name="ci"))
        tokens.authenticate(made.text)
    tokens.wait_for_writes()
    assert tokens.find(by=LOCAL)[0].last_used_at is not None


def test_a_last_use_that_cannot_be_written_harms_no_request(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER)

    def fail() -> None:
        raise OSError("disk")

    monkeypatch.setattr(tokens._database, "statement", fail)
    tokens.authenticate(made.text)
    tokens.wait_for_writes()
    monkeypatch.undo()
    tokens.authenticate(made.text)
    tokens.wait_for_writes()
    assert tokens.find(by=LOCAL)[0].last_used_at is not None


def test_a_scope_of_a_newer_version_gives_no_right(tokens: Tokens, database: Database) -> None:
    made = tokens.create("ci", by=LOCAL, role=Role.VIEWER, scopes=[Right.RUNS_READ])
    with database.write() as connection:
        connection.execute(api_tokens.update().values(scopes=["runs:read", "moon:read"]))
    assert tokens.authenticate(made.text).rights_among(Right) == {Right.RUNS_READ}
    tokens.wait_for_writes()


def test_access_to_manage_alone_does_not_revoke_a_token_with_more_rights(tokens: Tokens) -> None:
    strong = tokens.create("strong", by=LOCAL, role=Role.ADMIN)
    made = tokens.create("narrow", by=LOCAL, role=Role.ADMIN, scopes=[Right.ACCESS_MANAGE])
    weak = tokens.create("weak", by=LOCAL, role=Role.ADMIN, scopes=[Right.ACCESS_MANAGE])
    narrow = tokens.authenticate(made.text)
    with pytest.raises(NotPermitted) as refused:
        tokens.revoke("strong", by=narrow)
    assert refused.value.specific_code == "grant_refused"
    tokens.authenticate(strong.text)
    assert tokens.revoke(weak.token.id, by=narrow).token.state == "revoked"
    assert tokens.revoke("narrow", by=narrow).token.state == "revoked"
