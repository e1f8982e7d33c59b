"""The URL of a database: whose backend it names, and the error for one that cannot be used."""

from sqlalchemy.engine import URL

from tsuzuki.model.errors import ConfigurationError


def is_sqlite_url(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def invalid_url(problem: str) -> ConfigurationError:
    return ConfigurationError(
        problem,
        hint="Write sqlite:///path/to/file.db or postgresql://user@host/name.",
        code="database_url",
    )
