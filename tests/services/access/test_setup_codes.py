"""The setup code: makes the first admin, once."""

import pytest
from sqlalchemy import select

from services.access.conftest import LOCAL, PASSWORD, PLACE
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.access import Role
from tsuzuki.model.errors import Conflict, NotAuthenticated, TsuzukiError, UsageError
from tsuzuki.services.access.sessions import Sessions
from tsuzuki.services.access.setup_codes import LIFETIME_SECONDS, SetupCodes
from tsuzuki.services.access.users import Users
from tsuzuki.store import audit
from tsuzuki.store.schema.access_tables import setup_codes as setup_codes_table
from tsuzuki.store.sql.database import Database


def refusal_of(codes: SetupCodes, code: str, **given: str) -> str:
    values = {"name": "ada", "password": PASSWORD, **given}
    with pytest.raises(TsuzukiError) as refused:
        codes.redeem(code, **values)
    assert not code or code not in str(refused.value.as_dict())
    return refused.value.specific_code


def test_a_code_makes_an_admin_who_can_sign_in(
    setup_codes: SetupCodes, sessions: Sessions, database: Database
) -> None:
    code = setup_codes.create(actor="cli:root")
    made = setup_codes.redeem(code.text, name="Ada", password=PASSWORD)
    assert (made.name, made.role, made.created_by) == ("ada", Role.ADMIN, "setup code")
    assert sessions.sign_in("ada", PASSWORD, place=PLACE).principal.role is Role.ADMIN
    with database.read() as connection:
        stored = str(connection.execute(select(setup_codes_table)).all())
        entries = audit.find(connection)
    assert code.text not in f"{stored} {entries} {code!r}"
    actions = [entry.action for entry in reversed(entries)]
    assert actions == ["setup_code.create", "user.add", "session.start"]


@pytest.mark.parametrize("typed", [str.lower, lambda text: text.replace("-", " "), str.strip])
def test_a_code_can_be_typed_in_several_ways(setup_codes: SetupCodes, typed: object) -> None:
    code = setup_codes.create(actor="cli:root").text
    given = typed(code)  # type: ignore[operator]
    assert setup_codes.redeem(given, name="ada", password=PASSWORD).name == "ada"


def test_a_code_is_refused_if_it_is_wrong_replaced_or_expired(
    setup_codes: SetupCodes, users: Users, clock: MovingClock
) -> None:
    assert refusal_of(setup_codes, "ABCDE") == "setup_code_refused"
    first = setup_codes.create(actor="cli:root").text
    second = setup_codes.create(actor="cli:root").text
    for wrong in ("", "ABCDE-ABCDE-ABCDE-ABCDE", "\ud800", first):
        assert refusal_of(setup_codes, wrong) == "setup_code_refused"
    clock.advance(LIFETIME_SECONDS)
    assert refusal_of(setup_codes, second) == "setup_code_refused"
    assert not users.any()


def test_bad_input_does_not_use_the_code_up(setup_codes: SetupCodes) -> None:
    code = setup_codes.create(actor="cli:root").text
    assert refusal_of(setup_codes, code, name="a b") == "user_name"
    assert refusal_of(setup_codes, code, password="short") == "password_refused"
    setup_codes.redeem(code, name="ada", password=PASSWORD)


def test_there_is_nothing_to_set_up_where_there_is_a_user(
    setup_codes: SetupCodes, users: Users
) -> None:
    code = setup_codes.create(actor="cli:root").text
    users.add("viewer", PASSWORD, role=Role.VIEWER, by=LOCAL)
    assert refusal_of(setup_codes, code) == "setup_done"
    with pytest.raises(Conflict) as refused:
        setup_codes.create(actor="cli:root")
    assert refused.value.specific_code == "setup_done"


def test_of_many_at_once_one_is_the_first_admin(
    setup_codes: SetupCodes, users: Users, database: Database
) -> None:
    code = setup_codes.create(actor="cli:root").text

    def act(number: int) -> bool:
        try:
            if number == 0:
                users.add("local", PASSWORD, role=Role.ADMIN, by=LOCAL)
            else:
                setup_codes.redeem(code, name=f"user{number}", password=PASSWORD)
        except (Conflict, NotAuthenticated, UsageError):
            return False
        return True

    done = at_once(6, act)
    made = [user.name for user in users.find(by=LOCAL)]
    # The one on the machine may come after the first admin; by the code there is one at most.
    assert sum(done[1:]) <= 1
    assert len(made) == sum(done) >= 1
