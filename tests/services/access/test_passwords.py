"""Passwords: hashes of outdated parameters are renewed, and a missing library is told."""

import sys

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from services.access.conftest import LOCAL, PASSWORD, PLACE
from tsuzuki.model.access import Role
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.sessions import Sessions
from tsuzuki.services.access.users import Users
from tsuzuki.store.access import users as stored_users
from tsuzuki.store.sql.database import Database


def test_a_sign_in_renews_a_hash_of_outdated_parameters(users: Users, database: Database) -> None:
    users.add("ada", PASSWORD, role=Role.ADMIN, by=LOCAL)
    stronger = Passwords(PasswordHash((Argon2Hasher(time_cost=2, memory_cost=16, parallelism=1),)))
    sessions = Sessions(database=database, passwords=stronger)
    first = sessions.sign_in("ada", PASSWORD, place=PLACE)
    with database.read() as connection:
        user = stored_users.named(connection, "ada")
    assert user is not None
    assert "m=16,t=2" in user.password_hash
    assert user.password_hash not in repr(user)
    sessions.sign_in("ada", PASSWORD, place=PLACE)
    sessions.authenticate(first.secret)  # a renewed hash is no new password


def test_the_usual_parameters_are_those_that_argon2_recommends() -> None:
    made = Passwords().hash(PASSWORD, user_name="ada")
    assert made.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pwdlib", None)
    with pytest.raises(ConfigurationError) as missing:
        Passwords().hash(PASSWORD, user_name="ada")
    assert "tsuzuki[web]" in (missing.value.hint or "")
