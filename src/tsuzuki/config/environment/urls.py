"""URLs that may hold a password: hiding it, finding it where it should not be, what we speak."""

import re
from pathlib import Path

from tsuzuki.model.errors import ConfigurationError, Place

# A raw '/', '?' or even '@' in a password is a mistake, but it must not uncover the rest of it; so
# everything up to the last '@' is the password, unless it begins as a port number does.
_PASSWORD = re.compile(r"(://[^:/@\s]*:)(?!\d+(?:[/?#]|$))(\S+)@")
_SECRET_PARAMETER = re.compile(
    r"([?&](?:ssl)?(?:password|passwd|pwd|secret|token)=)([^&\s\"']+)", re.I
)
_HIDDEN = r"\g<1>***"

SQLITE = "sqlite"
_POSTGRESQL = frozenset({"postgres", "postgresql", "postgresql+psycopg"})
_REDIS = frozenset({"redis", "rediss", "unix"})


def redact_url(text: str) -> str:
    """`text` with every password of a URL in it replaced by `***`."""
    return _SECRET_PARAMETER.sub(_HIDDEN, _PASSWORD.sub(_HIDDEN + "@", text))


def holds_password(text: str) -> bool:
    """Whether `text` has a URL with a password written out."""
    return bool(_PASSWORD.search(text) or _SECRET_PARAMETER.search(text))


def database_url(text: str, *, name: str, workspace: Path, place: Place | None = None) -> str:
    """`text` as the store wants it: SQLite with an absolute path, PostgreSQL with its driver named.

    `name` is what the person called this setting, `place` where it was written; both go into the
    `ConfigurationError` raised for anything else.
    """
    scheme, separator, rest = text.partition("://")
    if separator and scheme == SQLITE:
        return _sqlite_url(rest, name=name, workspace=workspace, place=place)
    if separator and scheme in _POSTGRESQL:
        return f"postgresql+psycopg://{rest}"
    raise ConfigurationError(
        f"{name} must be the URL of a SQLite or PostgreSQL database, not {redact_url(text)!r}",
        hint="Write sqlite:///tsuzuki.db or postgresql://user@host/database.",
        place=place,
        code="database_url",
    )


def _sqlite_url(rest: str, *, name: str, workspace: Path, place: Place | None) -> str:
    location, question, query = rest.partition("?")
    path = location.removeprefix("/")
    if path == location or path in ("", ":memory:"):
        raise ConfigurationError(
            f"{name} must name a database file behind `sqlite:///`",
            hint="Three slashes and a path: sqlite:///tsuzuki.db is relative to the workspace, "
            "sqlite:////var/lib/tsuzuki.db is absolute.",
            place=place,
            code="database_url",
        )
    return f"sqlite:///{workspace / path}{question}{query}"


def redis_url(text: str, *, name: str, place: Place | None = None) -> str:
    """`text`, if it is the URL of a Redis. Raises `ConfigurationError` as `database_url` does."""
    scheme, separator, _ = text.partition("://")
    if separator and scheme in _REDIS:
        return text
    raise ConfigurationError(
        f"{name} must be the URL of a Redis, not {redact_url(text)!r}",
        hint="Write redis://host:6379/0, or rediss:// for TLS, or unix:///path/to/socket.",
        place=place,
        code="redis_url",
    )
