"""Setup codes: create the first admin on the web page of a server that has no users yet.

At most one code is valid at a time; a new one replaces it. A code is consumed in the transaction that adds the
user, and refused as soon as there is a user.
"""

from dataclasses import dataclass, field
from datetime import datetime

from tsuzuki.model import credentials
from tsuzuki.model.access import Role
from tsuzuki.model.errors import Conflict, NotAuthenticated
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.users import add_user, user_key
from tsuzuki.store import audit
from tsuzuki.store.access import setup_codes, users
from tsuzuki.store.access.users import User
from tsuzuki.store.sql.database import Connection, Database

LIFETIME_SECONDS = 3600.0
ACTOR = "setup code"
"""Who adds the first admin, in the audit log."""


@dataclass(frozen=True, kw_only=True)
class NewSetupCode:
    """`text` is shown once and stored nowhere."""

    expires_at: datetime
    text: str = field(repr=False)


class SetupCodes:
    def __init__(self, *, database: Database, passwords: Passwords) -> None:
        self._database = database
        self._passwords = passwords

    def create(self, *, actor: str) -> NewSetupCode:
        """A new code, valid for an hour. Raises `Conflict` (`setup_done`) if there is a user already."""
        text = credentials.new_setup_code()
        with self._database.write() as connection:
            users.lock(connection)
            _require_no_user(connection)
            expires_at = setup_codes.put(
                connection,
                code_hash=credentials.hash_of(text),
                lifetime_seconds=LIFETIME_SECONDS,
                actor=actor,
            )
            audit.record(
                connection,
                actor=actor,
                action="setup_code.create",
                object_type="setup_code",
                object_id="1",
                after={"expires_at": expires_at.isoformat()},
            )
        return NewSetupCode(expires_at=expires_at, text=text)

    def redeem(self, code: str, *, name: str, password: str) -> User:
        """Add the first user, an admin. Raises `NotAuthenticated` with the code `setup_code_refused` for a code that is
        wrong, used or expired, `Conflict` (`setup_done`) if there is a user already, `UsageError` for a name or a
        password that is refused; the code can be used again then."""
        code_hash = credentials.hash_of(credentials.normalise_setup_code(code))
        with self._database.read() as connection:
            _require_no_user(connection)
            valid = setup_codes.valid_hash(connection)
        # First the code: without it a password is not even hashed.
        if valid is None or not credentials.is_same(valid, code_hash):
            raise _refused()
        key = user_key(name)
        password_hash = self._passwords.hash(password, user_name=key)
        with self._database.write() as connection:
            users.lock(connection)
            _require_no_user(connection)
            if not setup_codes.use(connection, code_hash):
                raise _refused()
            return add_user(
                connection, name=key, role=Role.ADMIN, password_hash=password_hash, actor=ACTOR
            )


def _require_no_user(connection: Connection) -> None:
    if users.any_user(connection):
        raise Conflict(
            "setup is already done: there is a user",
            hint="Sign in, or add a user on the server: tsuzuki user add NAME --role admin",
            code="setup_done",
        )


def _refused() -> NotAuthenticated:
    return NotAuthenticated(
        "invalid setup code",
        hint="A code is valid once, within an hour. Restart with --setup to get a new one.",
        code="setup_code_refused",
    )
