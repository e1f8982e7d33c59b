"""Tokens: credentials of programs, with a role, scopes and an expiry.

A token acts with the rights of its role, narrowed to its scopes. One that a user made has never more rights than that
user has now, is refused while the user is disabled, and is gone with the user. One that was made with a token, its
parent, ends with that token: it expires no later, and is revoked with it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from tsuzuki.model import credentials
from tsuzuki.model.access import AnyRight, Principal, Right, Role
from tsuzuki.model.credentials import TOKEN_PREFIX
from tsuzuki.model.errors import Conflict, NotAuthenticated, NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.services.access.last_use import LastUse
from tsuzuki.services.access.permissions import (
    check_name,
    is_own,
    manages,
    require,
    require_grantable,
    require_no_more,
)
from tsuzuki.store import audit
from tsuzuki.store.access import tokens, users
from tsuzuki.store.access.tokens import Token
from tsuzuki.store.sql.database import Connection, Database

DAY_SECONDS = 86_400.0
LIFETIME_DEFAULT_SECONDS = 90 * DAY_SECONDS
LIFETIME_MIN_SECONDS = 60.0
LIFETIME_MAX_SECONDS = 3660 * DAY_SECONDS
_NO_TOKEN_HASH = credentials.hash_of("")
"""What is compared with if there is no such token."""


class TokenState(StrEnum):
    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A token without its secret. `id` is its public part, with the prefix; `user` the name of the user that it
    belongs to; `rights` what it may do now; `parent` the id of the token that it was made with."""

    id: str
    name: str
    state: TokenState
    role: Role
    scopes: frozenset[str] | None
    rights: frozenset[AnyRight]
    user: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    parent: str | None

    def as_dict(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        scopes = None if self.scopes is None else sorted(self.scopes)
        return {**values, "scopes": scopes, "rights": sorted(self.rights)}


@dataclass(frozen=True, kw_only=True)
class CreatedToken:
    """A token that was created; `text` is shown once and stored nowhere."""

    token: TokenView
    text: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class TokenFamily:
    """A token, and how many live ones were made with it, or with one of these."""

    token: TokenView
    made_with: int


@dataclass(frozen=True, kw_only=True)
class RevokedToken:
    """A token that was revoked; `also` are the names of those that were made with it."""

    token: TokenView
    also: list[str]

    def as_dict(self) -> dict[str, Any]:
        return {**self.token.as_dict(), "also_revoked": self.also}


class Tokens:
    def __init__(self, *, database: Database, rights: Mapping[str, AnyRight]) -> None:
        """`rights` are those of the engine and of usable collectors, by name."""
        self._database = database
        self._rights = rights
        self._last_use: LastUse[str] = LastUse(self._write_use)

    def create(
        self,
        name: str,
        *,
        by: Principal,
        role: Role,
        scopes: Collection[str] | None = None,
        expires_in_seconds: float = LIFETIME_DEFAULT_SECONDS,
    ) -> CreatedToken:
        """Create a token that belongs to the user of `by`. One that a token makes ends with that token.
        Raises `NotPermitted` if it would have more rights than `by` has, `Conflict` if a token of that name is not
        revoked, `UsageError` for a name, scope or expiry."""
        require(by, Right.ACCESS_OWN)
        check_name(name, what="token")
        narrowed = None if scopes is None else self._scopes(role, scopes)
        require_grantable(by, role, narrowed)
        made = credentials.new_token()
        new = tokens.NewToken(
            id=made.id,
            name=name,
            role=role,
            scopes=narrowed,
            secret_hash=credentials.hash_of(made.text),
            user_id=by.user_id,
            lifetime_seconds=_lifetime(expires_in_seconds),
            created_by=by.actor,
            parent_id=by.token_id,
        )
        with self._database.write() as connection:
            if by.user_id is not None and not users.lock_enabled(connection, by.user_id):
                raise _refused("the user was deleted or disabled", "token_revoked")
            if by.token_id is not None and not tokens.lock_live(connection, by.token_id):
                raise _refused("this token was revoked or has expired", "token_revoked")
            stored = tokens.add(connection, new)
            if stored is None:
                raise _name_taken(name)
            _note(connection, "token.create", stored, by)
        return CreatedToken(token=self._view(stored), text=made.text)

    def find(self, *, by: Principal, with_revoked: bool = False) -> list[TokenView]:
        """All tokens for a principal that manages access, else those of its own user; oldest first."""
        if not manages(by):
            require(by, Right.ACCESS_OWN)
            if by.user_id is None:
                return []
        with self._database.read() as connection:
            user_id = None if manages(by) else by.user_id
            found = tokens.find(connection, user_id=user_id, with_revoked=with_revoked)
        return [self._view(token) for token in found]

    def get(self, token: str, *, by: Principal) -> TokenFamily:
        """A token by its id or its name, and how many `revoke` would revoke with it. Raises `NotFound` as that."""
        with self._database.read() as connection:
            found = self._of(connection, token, by)
            made_with = tokens.made_with(connection, found.id)
        return TokenFamily(token=self._view(found), made_with=len(made_with))

    def revoke(self, token: str, *, by: Principal) -> RevokedToken:
        """Revoke a token by its id or its name, with all that were made with it; they are refused from now on.
        Raises `NotFound`, also for a token that `by` may not see, `NotPermitted` for one with more rights, and
        `Conflict` if it was revoked before."""
        with self._database.write() as connection:
            found = self._of(connection, token, by)
            if not _is_of(by, found):
                require_no_more(by, _principal(found).role, self._known(found.scopes))
            ids = tokens.revoke(connection, found.id, actor=by.actor)
            if ids is None:
                raise Conflict(
                    f"token {found.name!r} was already revoked",
                    hint="See: tsuzuki token ls --all",
                    code="token_state",
                )
            revoked, *also = [stored for each in ids if (stored := tokens.get(connection, each))]
            for each in (revoked, *also):
                _note(connection, "token.revoke", each, by)
        return RevokedToken(token=self._view(revoked), also=[each.name for each in also])

    def authenticate(self, text: str) -> Principal:
        """The principal that a token stands for. Raises `NotAuthenticated` (a `NotPermitted`) with the code
        `token_unknown`, `token_expired` or `token_revoked`."""
        token_id = credentials.token_id_of(text)
        if token_id is None:
            raise _refused("malformed token", "token_unknown")
        with self._database.single_read() as connection:
            token = tokens.get(connection, token_id)
        stored = _NO_TOKEN_HASH if token is None else token.secret_hash
        if not credentials.is_same(stored, credentials.hash_of(text)) or token is None:
            raise _refused("unknown token", "token_unknown")
        if token.revoked_at is not None or token.user_is_disabled:
            raise _refused("this token was revoked", "token_revoked")
        if token.is_expired:
            raise _refused("this token has expired", "token_expired")
        if token.is_use_outdated:
            self._last_use.note(token.id)
        return _principal(token)

    def of(self, principal: Principal) -> TokenView | None:
        """The token that a principal was authenticated by; None if by none."""
        if principal.token_id is None:
            return None
        with self._database.read() as connection:
            found = tokens.get(connection, principal.token_id)
        return None if found is None else self._view(found)

    def live(self, token_ids: Collection[str]) -> frozenset[str]:
        """Those of the tokens (by `Principal.token_id`) that still authenticate, in one statement: for streams, which
        end with theirs."""
        if not token_ids:
            return frozenset()
        with self._database.read() as connection:
            return tokens.live(connection, token_ids)

    def wait_for_writes(self) -> None:
        """Until the last uses are written."""
        self._last_use.wait()

    def _write_use(self, token_id: str) -> None:
        with self._database.statement() as connection:
            tokens.note_use(connection, token_id)

    def _of(self, connection: Connection, token: str, by: Principal) -> Token:
        """A token that `by` may revoke. Raises `NotFound`."""
        found = _sought(connection, token)
        if found is None or not (manages(by) or _is_of(by, found)):
            raise self._unknown(connection, token, by)
        return found

    def _unknown(self, connection: Connection, token: str, by: Principal) -> NotFound:
        user_id = None if manages(by) else by.user_id
        may_see = manages(by) or is_own(by, user_id)
        known = [t.name for t in tokens.find(connection, user_id=user_id)] if may_see else []
        return NotFound(
            f"there is no token {credentials.public_part(token)!r}",
            hint=did_you_mean(token, known) + "See: tsuzuki token ls",
            code="token_not_found",
        )

    def _scopes(self, role: Role, names: Collection[str]) -> frozenset[AnyRight]:
        for name in names:
            if name not in self._rights:
                raise UsageError(
                    f"unknown permission {name!r}",
                    hint=did_you_mean(name, self._rights)
                    + f"Rights: {', '.join(sorted(self._rights))}.",
                    code="right_unknown",
                )
        scopes = frozenset(self._rights[name] for name in names)
        beyond = sorted(right for right in scopes if not role.has(right))
        if not scopes or beyond:
            its = sorted(right for right in self._rights.values() if role.has(right))
            raise UsageError(
                f"role {role} lacks permission {beyond[0]}" if beyond else "no scope given",
                hint=f"The role {role} has: {', '.join(its)}.",
                code="scope_refused",
            )
        return scopes

    def _known(self, names: Collection[str] | None) -> list[AnyRight] | None:
        """Without those of collectors that are not installed, which give no right."""
        return None if names is None else [self._rights[n] for n in names if n in self._rights]

    def _view(self, token: Token) -> TokenView:
        is_revoked = token.revoked_at is not None
        ended = TokenState.EXPIRED if token.is_expired else TokenState.LIVE
        return TokenView(
            id=TOKEN_PREFIX + token.id,
            name=token.name,
            state=TokenState.REVOKED if is_revoked else ended,
            role=token.role,
            scopes=token.scopes,
            rights=_principal(token).rights_among(self._rights.values()),
            user=token.user_name,
            created_at=token.created_at,
            created_by=token.created_by,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
            revoked_at=token.revoked_at,
            revoked_by=token.revoked_by,
            parent=None if token.parent_id is None else TOKEN_PREFIX + token.parent_id,
        )


def _sought(connection: Connection, token: str) -> Token | None:
    """By id, with or without the prefix, by the whole token, or by name."""
    token_id = credentials.token_id_of(token) or token.removeprefix(TOKEN_PREFIX)
    return tokens.get(connection, token_id) or tokens.named(connection, token)


def _lifetime(seconds: float) -> float:
    if not LIFETIME_MIN_SECONDS <= seconds <= LIFETIME_MAX_SECONDS:
        raise UsageError(
            "a token must expire in 1 minute to 10 years",
            hint="For example: --expires-in 90d",
            code="token_lifetime",
        )
    return seconds


def _is_of(by: Principal, token: Token) -> bool:
    """A token may revoke itself with any scopes, and what it made: the way to get rid of one that leaked."""
    is_its = by.token_id is not None and by.token_id in (token.id, token.parent_id)
    return is_own(by, token.user_id) or is_its


def _principal(token: Token) -> Principal:
    role = token.role if token.user_role is None else token.role.limited_to(token.user_role)
    return Principal(
        actor=f"token:{token.name}",
        role=role,
        scopes=token.scopes,
        user_id=token.user_id,
        token_id=token.id,
    )


def _name_taken(name: str) -> Conflict:
    return Conflict(
        f"a token named {name!r} already exists",
        hint=f"Choose another name, or revoke the existing token: tsuzuki token revoke {name}",
        code="token_exists",
    )


def _refused(message: str, code: str) -> NotAuthenticated:
    hint = "Create a new one with: tsuzuki token create"
    return NotAuthenticated(message, hint=hint, code=code)


def _note(connection: Connection, action: str, token: Token, by: Principal) -> None:
    about = {
        "name": token.name,
        "role": token.role,
        "scopes": None if token.scopes is None else sorted(token.scopes),
        "user": token.user_name,
        "expires_at": token.expires_at.isoformat(),
    }
    is_new = action == "token.create"
    audit.record(
        connection,
        actor=by.actor,
        action=action,
        object_type="token",
        object_id=TOKEN_PREFIX + token.id,
        before=None if is_new else about,
        after=about if is_new else None,
    )
