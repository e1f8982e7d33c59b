"""Users: people who sign in with a password.

There is always an enabled admin once there was one: the last one cannot be removed, disabled or given another role.
A password that changes, a user that is disabled or removed, and a lower role end the sessions of that user.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tsuzuki.model.access import Principal, Role
from tsuzuki.store.sql.database import Database


@dataclass(frozen=True, kw_only=True)
class UserView:
    """A user without the password."""

    id: int
    name: str
    role: Role
    created_at: datetime
    created_by: str
    password_changed_at: datetime
    disabled_at: datetime | None
    last_sign_in_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        raise NotImplementedError


class Users:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def any(self) -> bool:
        """Whether there is a user at all."""
        raise NotImplementedError

    def find(self, *, by: Principal) -> list[UserView]:
        """All users by name for a principal that manages access, else only its own."""
        raise NotImplementedError

    def get(self, name: str, *, by: Principal) -> UserView:
        """Raises `NotFound`, also for a user that `by` may not see."""
        raise NotImplementedError

    def add(self, name: str, password: str, *, role: Role, by: Principal) -> UserView:
        """Add a user. Raises `Conflict` if the name is taken, `UsageError` for a name or a password that is refused,
        `NotPermitted` if the role has more rights than `by`."""
        raise NotImplementedError

    def set_password(
        self, name: str, password: str, *, by: Principal, current: str | None = None
    ) -> None:
        """Change a password; all sessions of that user end, but not the one of `by`. One's own needs the `current`
        one too, which counts as an attempt to sign in."""
        raise NotImplementedError

    def set_role(self, name: str, role: Role, *, by: Principal) -> UserView:
        """Raises `Conflict` (`last_admin`) if there would be no enabled admin left."""
        raise NotImplementedError

    def disable(self, name: str, *, by: Principal) -> UserView:
        """No sign-in any more; sessions end, tokens are refused at once. Raises `Conflict` (`last_admin`)."""
        raise NotImplementedError

    def enable(self, name: str, *, by: Principal) -> UserView:
        """Undo `disable`: the user can sign in again, and tokens that were not revoked work again."""
        raise NotImplementedError

    def remove(self, name: str, *, by: Principal) -> None:
        """Remove a user with all sessions and tokens. Raises `Conflict` (`last_admin`)."""
        raise NotImplementedError
