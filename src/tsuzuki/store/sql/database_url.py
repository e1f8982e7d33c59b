"""The URL of a database: whose backend it names, and the error for one that cannot be used."""

from collections.abc import Collection

from sqlalchemy.engine import URL

from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.suggestion import did_you_mean


def is_sqlite_url(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def check_parameters(url: URL, known: Collection[str]) -> None:
    """Raise `ConfigurationError` for a parameter after the `?` that is not `known`."""
    for name in url.query:
        if name not in known:
            raise ConfigurationError(
                f"the database URL has a parameter {name!r}, which is not known",
                hint=did_you_mean(name, known) + "Leave it out if it means nothing to you.",
                code="database_url",
            )


def invalid_url(problem: str) -> ConfigurationError:
    return ConfigurationError(
        problem,
        hint="Write sqlite:///path/to/file.db or postgresql://user@host/name.",
        code="database_url",
    )
