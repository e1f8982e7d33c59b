"""Passwords: which are accepted, and their argon2 hashes.

Checking takes the same time whether there is a user or not. A few are checked at once: each takes 64 MiB of memory.
"""

import threading
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from tsuzuki.model.errors import UsageError, extra_missing

LENGTH_MIN = 12
LENGTH_MAX = 1024
CHECKED_AT_ONCE_MAX = 4


class PasswordHasher(Protocol):
    """What pwdlib offers."""

    def hash(self, password: str) -> str: ...

    def verify_and_update(self, password: str, hash: str) -> tuple[bool, str | None]: ...  # noqa: A002 -- pwdlib's name


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Whether a password is right, and what to store from now on: the hash anew, if its parameters are outdated."""

    is_right: bool
    password_hash: str = field(repr=False)


class Passwords:
    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._given_hasher = hasher
        self._at_once = threading.BoundedSemaphore(CHECKED_AT_ONCE_MAX)

    def hash(self, password: str, *, user_name: str) -> str:
        """The hash of a new password. Raises `UsageError` (`password_refused`) if it is not good enough."""
        text = _normalised(password)
        if not LENGTH_MIN <= len(text) <= LENGTH_MAX:
            raise _refused(f"a password must have between {LENGTH_MIN} and {LENGTH_MAX} characters")
        if len(set(text)) == 1 or not text.casefold().replace(user_name, ""):
            raise _refused("this password is too easy to guess")
        with self._at_once:
            return self._hasher.hash(text)

    def check(self, password: str, password_hash: str | None) -> Checked:
        """Check a password against the hash of a user; None: there is no such user, and it is wrong."""
        decoy = self._decoy  # made in any case: the first unknown user must not take longer
        compared = password_hash or decoy
        try:
            text = _normalised(password)
        except UsageError:
            text = ""
        with self._at_once:
            is_right, renewed = self._hasher.verify_and_update(text[:LENGTH_MAX], compared)
        return Checked(
            is_right=is_right and password_hash is not None, password_hash=renewed or compared
        )

    @cached_property
    def _hasher(self) -> PasswordHasher:
        if self._given_hasher is not None:
            return self._given_hasher
        try:
            from pwdlib import PasswordHash  # noqa: PLC0415 -- only where there are users
        except ImportError as problem:
            message = "passwords need the library pwdlib, which is not installed"
            raise extra_missing(message, extra="web") from problem
        return PasswordHash.recommended()

    @cached_property
    def _decoy(self) -> str:
        """The hash of no password, compared with if there is no user."""
        return self._hasher.hash("no user has this password")


def _normalised(password: str) -> str:
    """The same text for the same keys on every system. Raises `UsageError`."""
    text = unicodedata.normalize("NFKC", password)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise _refused("this password is not valid Unicode text")
    return text


def _refused(message: str) -> UsageError:
    hint = "Use a password manager, or a phrase of several words."
    return UsageError(message, hint=hint, code="password_refused")
