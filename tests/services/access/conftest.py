"""The services of access on a database of their own, and two who ask: an operator of the machine and a user."""

from collections.abc import Iterator

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.sessions import Sessions, SignInPlace
from tsuzuki.services.access.setup_codes import SetupCodes
from tsuzuki.services.access.tokens import Tokens
from tsuzuki.services.access.users import Users
from tsuzuki.store.sql.database import Database

PASSWORD = "correct horse battery"
LOCAL = Principal(actor="cli:root", role=Role.ADMIN)
PLACE = SignInPlace(address="192.0.2.7", user_agent="Browser/1")


@pytest.fixture(scope="session")
def passwords() -> Passwords:
    """Real argon2, with parameters that take no time."""
    hasher = Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1)
    return Passwords(PasswordHash((hasher,)))


@pytest.fixture
def users(database: Database, passwords: Passwords) -> Users:
    return Users(database=database, passwords=passwords)


@pytest.fixture
def sessions(database: Database, passwords: Passwords) -> Iterator[Sessions]:
    sessions = Sessions(
        database=database, passwords=passwords, idle_seconds=3600, lifetime_seconds=86_400
    )
    yield sessions
    sessions.wait_for_writes()


@pytest.fixture
def setup_codes(database: Database, passwords: Passwords) -> SetupCodes:
    return SetupCodes(database=database, passwords=passwords)


@pytest.fixture
def tokens(database: Database) -> Iterator[Tokens]:
    tokens = Tokens(database=database, rights={right.value: right for right in Right})
    yield tokens
    tokens.wait_for_writes()


@pytest.fixture
def ada(users: Users, sessions: Sessions) -> Principal:
    """An admin who is signed in."""
    users.add("ada", PASSWORD, role=Role.ADMIN, by=LOCAL)
    return sessions.sign_in("ada", PASSWORD, place=PLACE).principal


@pytest.fixture
def bob(users: Users, sessions: Sessions, ada: Principal) -> Principal:
    """An operator who is signed in."""
    users.add("bob", PASSWORD, role=Role.OPERATOR, by=ada)
    return sessions.sign_in("bob", PASSWORD, place=PLACE).principal
