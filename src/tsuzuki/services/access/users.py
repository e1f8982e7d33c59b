"""Users: people who sign in with a password.

There is always an enabled admin once there was one: the last one cannot be removed, disabled or given another role.
A new password ends the sessions of the user, and so does being disabled or removed.
"""

from collections.abc import Callable
from typing import Any

from tsuzuki.model.access import Principal, Right, Role
from tsuzuki.model.errors import Conflict, NotAuthenticated, NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.permissions import (
    check_name,
    is_own,
    manages,
    require,
    require_grantable,
)
from tsuzuki.services.access.sign_in_limits import count_attempt, keys_of, note_success
from tsuzuki.store import audit
from tsuzuki.store.access import sessions, tokens, users
from tsuzuki.store.access.users import User
from tsuzuki.store.sql.database import Connection, Database

__all__ = ["User", "Users", "add_user", "user_key"]


class Users:
    def __init__(self, *, database: Database, passwords: Passwords) -> None:
        self._database = database
        self._passwords = passwords

    def any(self) -> bool:
        """Whether there is a user at all."""
        with self._database.single_read() as connection:
            return users.any_user(connection)

    def find(self, *, by: Principal) -> list[User]:
        """All users by name for a principal that manages access, else only its own."""
        if not manages(by):
            require(by, Right.ACCESS_OWN)
        with self._database.read() as connection:
            found = users.find(connection)
            return [user for user in found if manages(by) or is_own(by, user.id)]

    def get(self, name: str, *, by: Principal) -> User:
        """Raises `NotFound`, also for a user that `by` may not see."""
        with self._database.read() as connection:
            return _sought(connection, name, by)

    def add(self, name: str, password: str, *, role: Role, by: Principal) -> User:
        """Add a user. Raises `Conflict` if the name is taken, `UsageError` for a name or a password that is refused,
        `NotPermitted` if the role has more rights than `by`."""
        require(by, Right.ACCESS_MANAGE)
        require_grantable(by, role)
        key = user_key(name)
        password_hash = self._passwords.hash(password, user_name=key)
        with self._database.write() as connection:
            return add_user(
                connection, name=key, role=role, password_hash=password_hash, actor=by.actor
            )

    def set_password(
        self, name: str, password: str, *, by: Principal, current: str | None = None
    ) -> None:
        """Change a password; all sessions of that user end, but not the one of `by`. One's own needs the `current`
        one too, which counts as an attempt to sign in."""
        with self._database.read() as connection:
            user = _sought(connection, name, by)
        # Who can set a password can sign in with it: never with more rights than before.
        require_grantable(by, user.role)
        password_hash = self._passwords.hash(password, user_name=user.name)
        if is_own(by, user.id):
            self._check_current(user, current)
        with self._database.write() as connection:
            users.lock(connection)
            require_grantable(by, _sought(connection, name, by).role)
            if not users.set_password(connection, user, password_hash):
                raise Conflict(
                    f"another process changed the password of {user.name} at the same time",
                    hint="Nothing was changed; try again.",
                    code="user_changed",
                )
            sessions.end_all(connection, user.id, except_id=by.session_id)
            _note(connection, "user.set_password", by, user, None)

    def set_role(self, name: str, role: Role, *, by: Principal) -> User:
        """Raises `Conflict` (`last_admin`) if there would be no enabled admin left."""
        require_grantable(by, role)
        return self._change(
            name,
            "user.set_role",
            by=by,
            change=lambda connection, user: users.set_role(connection, user.id, role),
        )

    def disable(self, name: str, *, by: Principal) -> User:
        """No sign-in any more; sessions end, and tokens are refused at once. Raises `Conflict` (`last_admin`)."""

        def disable(connection: Connection, user: User) -> User | None:
            if user.disabled_at is not None:
                raise _wrong_state(user, "already disabled")
            disabled = users.disable(connection, user.id)
            sessions.end_all(connection, user.id)
            return disabled

        return self._change(name, "user.disable", by=by, change=disable)

    def enable(self, name: str, *, by: Principal) -> User:
        """Undo `disable`: the user can sign in again, and tokens that were not revoked work again."""

        def enable(connection: Connection, user: User) -> User | None:
            if user.disabled_at is None:
                raise _wrong_state(user, "not disabled")
            return users.enable(connection, user.id)

        return self._change(name, "user.enable", by=by, change=enable)

    def remove(self, name: str, *, by: Principal) -> None:
        """Remove a user with all sessions and tokens. Raises `Conflict` (`last_admin`)."""
        require(by, Right.ACCESS_MANAGE)
        with self._database.write() as connection:
            users.lock(connection)
            user = _sought(connection, name, by)
            require_grantable(by, user.role)
            theirs = tokens.find(connection, user_id=user.id)
            if users.remove(connection, user.id) is None:
                raise _last_admin(user)
            before = {**_about(user), "tokens": [token.name for token in theirs]}
            _record(connection, "user.remove", by.actor, user.name, before=before)

    def _change(
        self,
        name: str,
        action: str,
        *,
        by: Principal,
        change: Callable[[Connection, User], User | None],
    ) -> User:
        require(by, Right.ACCESS_MANAGE)
        with self._database.write() as connection:
            users.lock(connection)
            user = _sought(connection, name, by)
            require_grantable(by, user.role)
            changed = change(connection, user)
            if changed is None:
                raise _last_admin(user)
            _note(connection, action, by, user, changed)
        return changed

    def _check_current(self, user: User, current: str | None) -> None:
        if current is None:
            raise UsageError(
                "changing your own password requires your current one", code="password_missing"
            )
        keys = keys_of(user.name, f"user {user.id}")
        with self._database.write() as connection:
            limited = count_attempt(self._database, connection, keys)
        if limited is not None:
            raise limited.error
        if not self._passwords.check(current, user.password_hash).is_right:
            raise NotAuthenticated("wrong current password", code="password_wrong")
        with self._database.write() as connection:
            note_success(connection, keys)


def user_key(name: str) -> str:
    """A name as it is stored: in lower case. Raises `UsageError`."""
    return check_name(name, what="user").lower()


def add_user(
    connection: Connection, *, name: str, role: Role, password_hash: str, actor: str
) -> User:
    """Store a user and audit it. Raises `Conflict` if the name is taken."""
    users.lock(connection)
    user = users.add(connection, name=name, role=role, password_hash=password_hash, actor=actor)
    if user is None:
        raise Conflict(
            f"a user named {name!r} already exists",
            hint=f"Set a new password with: tsuzuki user passwd {name}",
            code="user_exists",
        )
    _record(connection, "user.add", actor, name, after=_about(user))
    return user


def _sought(connection: Connection, name: str, by: Principal) -> User:
    user = users.named(connection, user_key(name))
    if user is not None and (manages(by) or is_own(by, user.id)):
        return user
    known = [known.name for known in users.find(connection)] if manages(by) else []
    raise NotFound(
        f"there is no user {name!r}",
        hint=did_you_mean(name, known) + "See: tsuzuki user ls",
        code="user_not_found",
    )


def _last_admin(user: User) -> Conflict:
    return Conflict(
        f"{user.name} is the last admin",
        hint="Make another user an admin first: tsuzuki user add NAME --role admin",
        code="last_admin",
    )


def _wrong_state(user: User, state: str) -> Conflict:
    return Conflict(f"user {user.name} is {state}", hint="See: tsuzuki user ls", code="user_state")


def _about(user: User) -> dict[str, Any]:
    return {"role": user.role, "disabled": user.disabled_at is not None}


def _note(
    connection: Connection, action: str, by: Principal, before: User, after: User | None
) -> None:
    """A changed password is not in it, only that it changed."""
    _record(
        connection,
        action,
        by.actor,
        before.name,
        before=_about(before) if after else None,
        after=_about(after) if after else None,
    )


def _record(
    connection: Connection,
    action: str,
    actor: str,
    name: str,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    audit.record(
        connection,
        actor=actor,
        action=action,
        object_type="user",
        object_id=name,
        before=before,
        after=after,
    )
