"""Sessions: a new secret at each sign-in, two limits of time, and few guesses."""

import pytest
from sqlalchemy import select

from services.access.conftest import LOCAL, PASSWORD, PLACE
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.errors import NotAuthenticated, NotFound, NotPermitted
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.sessions import Sessions, SignInPlace
from tsuzuki.services.access.sign_in_limits import BY_ADDRESS_MAX, BY_NAME_MAX, WINDOW_SECONDS
from tsuzuki.services.access.users import Users
from tsuzuki.store import audit
from tsuzuki.store.schema.access_tables import sign_in_attempts, user_sessions
from tsuzuki.store.sql.database import Database

IDLE_SECONDS, LIFETIME_SECONDS = 3600, 86_400


def refused(
    sessions: Sessions, name: str, password: str = PASSWORD, place: SignInPlace = PLACE
) -> NotAuthenticated:
    with pytest.raises(NotAuthenticated) as caught:
        sessions.sign_in(name, password, place=place)
    return caught.value


def code_for(sessions: Sessions, secret: str) -> str:
    with pytest.raises(NotAuthenticated) as caught:
        sessions.authenticate(secret)
    assert not secret or secret not in str(caught.value.as_dict())
    return caught.value.specific_code


def test_a_session_stands_for_its_user_and_its_secret_is_not_stored(
    sessions: Sessions, ada: Principal, database: Database
) -> None:
    signed_in = sessions.sign_in("ada", PASSWORD, place=PLACE)
    found = sessions.authenticate(signed_in.secret)
    assert found.principal == signed_in.principal
    assert (found.principal.actor, found.principal.role) == ("user:ada", Role.ADMIN)
    assert (found.session.address, found.session.user_agent) == ("192.0.2.7", "Browser/1")
    with database.read() as connection:
        rows = str(connection.execute(select(user_sessions)).all())
        (entry, *_) = audit.find(connection, object_type="session")
    assert signed_in.secret not in f"{rows} {signed_in!r} {entry!r}"
    assert (entry.actor, entry.action) == ("user:ada", "session.start")
    assert entry.after == {"user": "ada", "address": "192.0.2.7"}


def test_each_sign_in_has_a_new_secret_and_ends_the_one_it_replaces(
    sessions: Sessions, ada: Principal
) -> None:
    first = sessions.sign_in("ada", PASSWORD, place=PLACE)
    second = sessions.sign_in("ada", PASSWORD, place=PLACE, replacing=first.secret)
    assert first.secret != second.secret
    assert code_for(sessions, first.secret) == "session_unknown"
    sessions.authenticate(second.secret)


def test_a_session_ends_without_requests_and_after_a_day_in_any_case(
    sessions: Sessions, ada: Principal, clock: MovingClock
) -> None:
    idle = sessions.sign_in("ada", PASSWORD, place=PLACE)
    busy = sessions.sign_in("ada", PASSWORD, place=PLACE)
    for _ in range(LIFETIME_SECONDS // IDLE_SECONDS * 2 - 1):
        clock.advance(IDLE_SECONDS / 2)
        sessions.authenticate(busy.secret)
        sessions.wait_for_writes()
    assert code_for(sessions, idle.secret) == "session_expired"
    assert [s.id for s in sessions.find(by=ada)] == [busy.session.id]
    assert sessions.live([idle.session.id, busy.session.id]) == {busy.session.id}
    clock.advance(IDLE_SECONDS / 2)
    assert code_for(sessions, busy.secret) == "session_expired"
    sessions.sign_in("ada", PASSWORD, place=PLACE)
    assert code_for(sessions, idle.secret) == "session_unknown"  # deleted


def test_sessions_are_listed_and_ended_by_their_user_or_one_who_manages_access(
    sessions: Sessions, ada: Principal, bob: Principal, database: Database
) -> None:
    assert ada.session_id is not None
    assert bob.session_id is not None
    assert [s.user for s in sessions.find(by=bob)] == ["bob"]
    assert {s.user for s in sessions.find(by=ada, every_user=True)} == {"ada", "bob"}
    assert sessions.find(by=LOCAL) == []
    with pytest.raises(NotPermitted):
        sessions.find(by=bob, every_user=True)
    with pytest.raises(NotFound):
        sessions.end(ada.session_id, by=bob)
    with pytest.raises(NotPermitted):
        sessions.end_all(by=bob, user="ada")
    sessions.end(bob.session_id, by=ada)
    with pytest.raises(NotFound):
        sessions.end(bob.session_id, by=ada)
    with database.read() as connection:
        (entry,) = [e for e in audit.find(connection) if e.action == "session.end"]
    assert (entry.actor, entry.before) == ("user:ada", {"user": "bob"})


def test_all_sessions_of_a_user_end_at_once_or_all_but_ones_own(
    sessions: Sessions, ada: Principal, bob: Principal
) -> None:
    others = [sessions.sign_in("bob", PASSWORD, place=PLACE) for _ in range(2)]
    assert sessions.end_all(by=bob, keep_own=True) == 2
    assert [code_for(sessions, other.secret) for other in others] == ["session_unknown"] * 2
    assert sessions.end_all(by=ada, user="bob") == 1
    assert sessions.find(by=bob) == []
    with pytest.raises(NotFound):
        sessions.end_all(by=ada, user="cat")


def test_the_role_of_a_session_is_the_one_its_user_has_now(
    sessions: Sessions, users: Users, ada: Principal, bob: Principal
) -> None:
    secret = sessions.sign_in("bob", PASSWORD, place=PLACE).secret
    users.set_role("bob", Role.VIEWER, by=ada)
    assert sessions.authenticate(secret).principal.role is Role.VIEWER


def test_an_unknown_user_a_wrong_password_and_a_disabled_user_are_told_the_same(
    sessions: Sessions, users: Users, ada: Principal, bob: Principal
) -> None:
    users.disable("bob", by=ada)
    answers = [
        refused(sessions, "ada", "wrong password").as_dict(),
        refused(sessions, "cat").as_dict(),
        refused(sessions, "bob").as_dict(),
        refused(sessions, "no\x00 name \ud800").as_dict(),
    ]
    assert {str(answer) for answer in answers} == {str(answers[0])}
    assert answers[0]["code"] == "sign_in_refused"


def test_an_unknown_user_costs_one_check_of_a_password_like_a_known_one(
    sessions: Sessions, ada: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    hasher = sessions._passwords._hasher
    verify = hasher.verify_and_update

    def counted(password: str, stored: str) -> tuple[bool, str | None]:
        checked.append(stored.rsplit("$", 2)[0])
        return verify(password, stored)

    monkeypatch.setattr(hasher, "verify_and_update", counted)
    refused(sessions, "ada", "wrong password")
    refused(sessions, "cat", "wrong password")
    assert len(checked) == 2
    assert checked[0] == checked[1]  # the same parameters


def test_a_name_is_limited_whether_it_exists_or_not_until_its_window_ends(
    sessions: Sessions, ada: Principal, clock: MovingClock
) -> None:
    for name in ("ada", "cat"):
        for number in range(BY_NAME_MAX):
            place = SignInPlace(address=f"192.0.2.{number}")
            assert refused(sessions, name, "wrong", place).specific_code == "sign_in_refused"
    limited = refused(sessions, "ada")
    assert limited.specific_code == "sign_in_limited"
    assert limited.retry_after_seconds == WINDOW_SECONDS
    assert refused(sessions, "cat").as_dict() == limited.as_dict()
    clock.advance(WINDOW_SECONDS)
    sessions.sign_in("ada", PASSWORD, place=PLACE)


def test_an_address_is_limited_and_a_success_does_not_clear_it(
    sessions: Sessions, ada: Principal
) -> None:
    for number in range(BY_ADDRESS_MAX - 1):
        refused(sessions, f"name{number}", "wrong")
    sessions.sign_in("ada", PASSWORD, place=PLACE)
    assert refused(sessions, "cat", "wrong").specific_code == "sign_in_refused"
    assert refused(sessions, "ada").specific_code == "sign_in_limited"
    elsewhere = SignInPlace(address="2001:db8::1")
    sessions.sign_in("ada", PASSWORD, place=elsewhere)


def rows_of_attempts(database: Database) -> int:
    with database.read() as connection:
        return len(connection.execute(select(sign_in_attempts)).all())


def test_an_address_stores_few_names_and_they_go_when_their_time_is_over(
    sessions: Sessions, database: Database, clock: MovingClock
) -> None:
    for number in range(BY_ADDRESS_MAX + 30):
        refused(sessions, f"name{number}", "wrong")
    assert rows_of_attempts(database) == BY_ADDRESS_MAX + 1
    clock.advance(WINDOW_SECONDS)
    refused(sessions, "another", "wrong")
    assert rows_of_attempts(database) == 2


def test_addresses_of_one_network_count_as_one(
    sessions: Sessions, ada: Principal, database: Database
) -> None:
    def rows() -> int:
        return rows_of_attempts(database)

    before = rows()
    for address in ("2001:db8::1", "2001:db8::2", "2001:db8::ffff%eth0"):
        refused(sessions, "cat", "wrong", SignInPlace(address=address))
    assert rows() == before + 2  # the name and the network
    for address in ("198.51.100.1", "::ffff:198.51.100.1"):
        refused(sessions, "cat", "wrong", SignInPlace(address=address))
    refused(sessions, "cat", "wrong", SignInPlace(address=None))
    refused(sessions, "cat", "wrong", SignInPlace(address="unix:"))
    assert rows() == before + 5


def test_attempts_that_come_at_once_do_not_pass_the_limit_together(
    sessions: Sessions, ada: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    check = Passwords.check

    def counted(self: Passwords, password: str, stored: str | None) -> object:
        checked.append(password)
        return check(self, password, stored)

    monkeypatch.setattr(Passwords, "check", counted)
    at_once(BY_NAME_MAX + 6, lambda number: refused(sessions, "ada", f"guess {number}"))
    assert len(checked) == BY_NAME_MAX


def test_the_right_password_forgets_the_wrong_ones(sessions: Sessions, ada: Principal) -> None:
    for _ in range(2):
        for _ in range(BY_NAME_MAX - 1):
            refused(sessions, "ada", "wrong")
        sessions.sign_in("ada", PASSWORD, place=PLACE)


def test_a_clock_that_was_put_back_does_not_lengthen_the_window(
    sessions: Sessions, ada: Principal, clock: MovingClock
) -> None:
    for _ in range(BY_NAME_MAX + 1):
        refused(sessions, "ada", "wrong")
    clock.step(-7 * 86_400)
    sessions.sign_in("ada", PASSWORD, place=PLACE)


def test_a_password_typed_as_a_name_is_not_to_be_read_anywhere(
    sessions: Sessions, ada: Principal, database: Database
) -> None:
    refused(sessions, "hunter2hunter2", PASSWORD)
    with database.read() as connection:
        rows = str(connection.execute(select(sign_in_attempts)).all())
        entries = str(audit.find(connection))
    assert "hunter2" not in rows + entries


def test_the_same_password_from_another_keyboard_is_the_same(
    users: Users, sessions: Sessions
) -> None:
    users.add("cat", "caf\u00e9 au lait s'il", role=Role.VIEWER, by=LOCAL)
    sessions.sign_in("cat", "cafe\u0301 au lait s'il", place=PLACE)


def refusals(database: Database) -> list[tuple[str, str, object]]:
    with database.read() as connection:
        found = audit.find(connection, object_type="user", actor="anonymous", limit=500)
    return [(entry.action, entry.object_id, entry.after) for entry in reversed(found)]


def test_a_refused_sign_in_is_logged_and_audited_without_what_was_typed(
    sessions: Sessions, ada: Principal, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    refused(sessions, "ada", "wrong password")
    refused(sessions, "my secret password")
    about = {"address": "192.0.2.7", "code": "sign_in_refused"}
    assert refusals(database) == [
        ("session.refuse", "ada", about),
        ("session.refuse", "unknown", about),
    ]
    assert "sign_in_refused" in caplog.text
    assert "password" not in caplog.text


def test_a_lock_out_is_audited_once(sessions: Sessions, ada: Principal, database: Database) -> None:
    for _ in range(BY_NAME_MAX + 5):
        refused(sessions, "ada", "wrong password")
    codes = [after["code"] for _, _, after in refusals(database)]  # type: ignore[index]
    assert codes == ["sign_in_refused"] * BY_NAME_MAX + ["sign_in_limited"]


def test_a_session_of_a_user_with_more_rights_cannot_be_ended(
    sessions: Sessions, ada: Principal
) -> None:
    signed_in = sessions.sign_in("ada", PASSWORD, place=PLACE)
    narrow = Principal(
        actor="token:narrow", role=Role.ADMIN, scopes=frozenset({Right.ACCESS_MANAGE})
    )
    with pytest.raises(NotPermitted, match="permissions it does not have"):
        sessions.end(signed_in.session.id, by=narrow)
    with pytest.raises(NotPermitted, match="permissions it does not have"):
        sessions.end_all(by=narrow, user="ada")
    sessions.authenticate(signed_in.secret)
