"""The URL of a database: whose backend it names, its hosts, and the error for one that cannot be used.

Several hosts are written as libpq has them: `postgresql://user@first:5432,second:5432/name`.
"""

from collections.abc import Collection

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.suggestion import did_you_mean


def is_sqlite_url(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def parse_url(text: str) -> URL:
    """Raises `ConfigurationError`. SQLAlchemy has several hosts as parameters, and takes no list of them."""
    scheme, separator, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, hosts = authority.rpartition("@")
    try:
        if "," not in hosts:
            return make_url(text)
        _check_ports(hosts.split(","))
        url = make_url(f"{scheme}{separator}{user}{at}{slash}{path}")
    except (ArgumentError, ValueError):
        raise invalid_url("cannot parse the database URL") from None
    return url.update_query_pairs([("host", host) for host in hosts.split(",")])


def _check_ports(hosts: list[str]) -> None:
    """Raises `ValueError`."""
    for host in hosts:
        _, colon, port = host.rpartition("]")[2].partition(":")
        if colon:
            int(port)


def hosts_of(url: URL) -> tuple[str, ...]:
    """Those of a URL that names several; else none."""
    hosts = url.query.get("host", ())
    return hosts if isinstance(hosts, tuple) else ()


def as_libpq(url: URL) -> str:
    """The URL without its password, as the programs of PostgreSQL read it."""
    # Not `set`, which takes None for "as it is".
    plain = url.set(drivername="postgresql")._replace(password=None)
    hosts = hosts_of(url)
    text = plain.difference_update_query(["host"] if hosts else []).render_as_string()
    scheme, separator, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority}{','.join(hosts)}{slash}{path}"


def check_parameters(url: URL, known: Collection[str]) -> None:
    """Raise `ConfigurationError` for a parameter after the `?` that is not `known`."""
    for name in url.query:
        if name not in known:
            raise ConfigurationError(
                f"unknown parameter {name!r} in the database URL",
                hint=did_you_mean(name, known) + "Remove it.",
                code="database_url",
            )


def invalid_url(problem: str) -> ConfigurationError:
    return ConfigurationError(
        problem,
        hint="Write sqlite:///path/to/file.db or postgresql://user@host/name.",
        code="database_url",
    )
