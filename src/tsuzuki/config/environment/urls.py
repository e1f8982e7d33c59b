"""URLs of databases and of Redis: normalise and check them, find passwords in them."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from tsuzuki.config.environment.variables import ConfiguredValue
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.secrets import mask_secrets

_POSTGRESQL = frozenset({"postgres", "postgresql", "postgresql+psycopg"})
_REDIS = frozenset({"redis", "rediss", "unix"})


def holds_password(text: str) -> bool:
    """Whether `text` contains a URL with a password."""
    return mask_secrets(text) != text


def passwords_in(url: str | None) -> set[str]:
    """The password of a URL as it is written, and what it stands for."""
    try:
        password = urlsplit(url or "").password
    except ValueError:
        return set()
    return {password, unquote(password)} if password else set()


def normalise_database_url(given: ConfiguredValue, *, workspace: Path) -> str:
    """The URL as the store expects it: SQLite with an absolute path, PostgreSQL with its driver.

    Raises `ConfigurationError` for any other database.
    """
    scheme, separator, rest = given.text.partition("://")
    if separator and scheme == "sqlite":
        return _normalise_sqlite_url(rest, given, workspace)
    if separator and scheme in _POSTGRESQL:
        return f"postgresql+psycopg://{rest}"
    raise _url_error(
        given,
        f"must be the URL of a SQLite or PostgreSQL database, not {mask_secrets(given.text)!r}",
        hint="Write sqlite:///tsuzuki.db or postgresql://user@host/database.",
        code="database_url",
    )


def check_direct_url(given: ConfiguredValue) -> str:
    """The URL of a PostgreSQL past its pooler, as the store expects it. Raises `ConfigurationError` for any other."""
    scheme, separator, rest = given.text.partition("://")
    if separator and scheme in _POSTGRESQL:
        return f"postgresql+psycopg://{rest}"
    raise _url_error(
        given,
        f"must be the URL of a PostgreSQL database, not {mask_secrets(given.text)!r}",
        hint="It must bypass the connection pooler and lead to the server itself. Leave it out "
        "if there is no pooler.",
        code="database_url",
    )


def check_redis_url(given: ConfiguredValue) -> str:
    """The URL of a Redis, unchanged. Raises `ConfigurationError` for any other URL."""
    scheme, separator, _ = given.text.partition("://")
    if separator and scheme in _REDIS:
        return given.text
    raise _url_error(
        given,
        f"must be a Redis URL, not {mask_secrets(given.text)!r}",
        hint="Write redis://host:6379/0, rediss:// for TLS, or unix:///path/to/socket.",
        code="redis_url",
    )


def _normalise_sqlite_url(rest: str, given: ConfiguredValue, workspace: Path) -> str:
    location, question, query = rest.partition("?")
    path = location.removeprefix("/")
    if path == location or path in ("", ":memory:"):
        raise _url_error(
            given,
            "must name a database file after `sqlite:///`",
            hint="Write three slashes and a path: sqlite:///tsuzuki.db is relative to the "
            "workspace, sqlite:////var/lib/tsuzuki.db is absolute.",
            code="database_url",
        )
    return f"sqlite:///{workspace / path}{question}{query}"


def _url_error(given: ConfiguredValue, what: str, *, hint: str, code: str) -> ConfigurationError:
    return ConfigurationError(f"{given.name} {what}", hint=hint, place=given.place, code=code)
