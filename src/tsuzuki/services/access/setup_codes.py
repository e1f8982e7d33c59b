"""The setup code: by which the first admin is made on the page of a server that has no user yet.

At most one code is valid at a time; a new one replaces it. It is used up in the transaction that adds the user, and
refused as soon as there is any user.
"""

from dataclasses import dataclass, field
from datetime import datetime

from tsuzuki.services.access.users import UserView
from tsuzuki.store.sql.database import Database

LIFETIME_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class NewSetupCode:
    """`text` is shown once and stored nowhere."""

    expires_at: datetime
    text: str = field(repr=False)


class SetupCodes:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def create(self, *, actor: str) -> NewSetupCode:
        """A new code, valid for an hour. Raises `Conflict` (`setup_done`) if there is a user already."""
        raise NotImplementedError

    def redeem(self, code: str, *, name: str, password: str) -> UserView:
        """Add the first user, an admin. Raises `NotAuthenticated` with the code `setup_code_refused` for a code that is
        wrong, used or expired, `Conflict` (`setup_done`) if there is a user already, `UsageError` for a name or a
        password that is refused; the code can be used again then."""
        raise NotImplementedError
