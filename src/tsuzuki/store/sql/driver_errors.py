"""Driver errors, translated: a database that is unreachable, locked, full or read-only, in plain words."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, StatementError
from sqlalchemy.exc import OperationalError as SqlOperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tsuzuki.model.errors import NotPermitted, TsuzukiError, Unreachable
from tsuzuki.store.sql.database_url import is_sqlite_url
from tsuzuki.store.sql.postgresql import is_out_of_connections
from tsuzuki.store.sql.sqlite import LOCK_TIMEOUT_SECONDS

RETRY_AFTER_SECONDS = 1.0

SQLITE_ERRORS = (
    (
        "unable to open database file",
        "cannot be opened",
        "Check that the folder exists and is writable.",
    ),
    (
        "readonly database",
        "is read-only",
        "Give this user write access to the file and its folder.",
    ),
    (
        "disk is full",
        "is out of disk space",
        "Free some disk space; nothing that was confirmed is lost.",
    ),
    ("disk i/o error", "cannot be read or written", "Check the disk, then run: tsuzuki db check"),
    (
        "file is not a database",
        "is not an SQLite database",
        "Check the path. Nothing was changed.",
    ),
    ("malformed", "is damaged", "Restore a backup; check it with: tsuzuki db check"),
    (
        "is locked",
        f"stayed locked by another writer for {LOCK_TIMEOUT_SECONDS:.0f} s (lock timeout)",
        "Find what holds it, then try again.",
    ),
)
"""By a phrase of SQLite's message."""

NOT_HEALED_BY_TIME = (
    "unable to open database file",
    "readonly database",
    "file is not a database",
    "malformed",
)
"""Those after which a person has to do something: no later moment is named for another try."""

POSTGRES_ERRORS = {
    "25006": ("is read-only", "If it is a standby, use the URL of the primary server."),
    "40P01": ("ended this transaction because of a deadlock", "Nothing was changed; try again."),
    "53100": ("is out of disk space", "Free some disk space; nothing that was confirmed is lost."),
    "55P03": ("did not grant a lock in time (lock timeout)", "Nothing was changed; try again."),
    "57014": (
        "ended this statement (statement timeout)",
        "Check whether its statement_timeout is very short.",
    ),
}
"""By SQLSTATE."""

_LOGIN = "Correct the user and password in the database URL. See TSUZUKI_DATABASE_URL."
REFUSALS = (
    (r"password authentication failed|no password supplied", _LOGIN),
    (r'role ".*" does not exist', _LOGIN),
    (r"no pg_hba\.conf entry", "Let the server's pg_hba.conf allow this user from this host."),
    (
        r"session is read-only|hot standby mode",
        "None of the URL's servers is a primary: wait for the failover, or promote a standby.",
    ),
    (
        r'database ".*" does not exist',
        "Create the database (createdb), or correct its name in TSUZUKI_DATABASE_URL.",
    ),
)
"""By a pattern of the message with which a server that runs refuses a connection; it has no SQLSTATE."""

INSUFFICIENT_PRIVILEGE = "42501"

LIMIT_EXCEEDED = "54"
"""The class of SQLSTATE for a value or a statement that is too large."""

TOO_MANY_PARAMETERS = "number of parameters must be between"
"""Said by libpq, which sends nothing then and has no SQLSTATE."""


@contextmanager
def translate_errors(url: URL) -> Iterator[None]:
    """Raise driver errors about the database itself as `Unreachable`; mistakes in a statement as they
    are."""
    try:
        yield
    except (SqlOperationalError, InterfaceError) as problem:
        if _is_mistake(problem.orig):
            raise
        raise _unreachable(problem.orig, url) from problem
    except DBAPIError as problem:
        if getattr(problem.orig, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            raise _not_permitted(problem.orig, url) from problem
        is_known = getattr(problem.orig, "sqlstate", None) in POSTGRES_ERRORS
        if problem.connection_invalidated or is_known or _is_corrupt(problem):
            raise _unreachable(problem.orig, url) from problem
        raise
    except PoolTimeout as problem:
        hint = "Handlers hold transactions for long, or there are many at once: lower --capacity."
        raise _error(_shown(url), f"is busy: {problem}", hint) from problem
    except StatementError as problem:
        # A value that one of our own column types refused, wrapped by SQLAlchemy.
        if isinstance(problem.orig, TsuzukiError):
            raise problem.orig from None
        raise


def _is_mistake(problem: BaseException | None) -> bool:
    """Whether the statement or its values are wrong, although the driver calls it an operational error: a retry
    would fail the same way."""
    return (
        getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
        or (getattr(problem, "sqlstate", None) or "").startswith(LIMIT_EXCEEDED)
        or TOO_MANY_PARAMETERS in str(problem)
    )


def _is_corrupt(problem: DBAPIError) -> bool:
    """Whether the file is damaged or not a database: SQLite raises its general error for that."""
    message = str(problem.orig)
    return "file is not a database" in message or "disk image is malformed" in message


def _unreachable(problem: BaseException | None, url: URL) -> Unreachable:
    message = _first_line(problem)
    if is_sqlite_url(url):
        for phrase, what, hint in SQLITE_ERRORS:
            if phrase in message.lower():
                heals = phrase not in NOT_HEALED_BY_TIME
                return _error(str(url.database), what, hint, heals=heals)
    name = _shown(url)
    if is_out_of_connections(problem):
        hint = (
            "Raise max_connections on the server, or run fewer processes: each keeps two "
            "connections, and more under load."
        )
        return _error(name, "has no free connection", hint)
    known = POSTGRES_ERRORS.get(getattr(problem, "sqlstate", None) or "")
    if known is not None:
        return _error(name, *known)
    for pattern, hint in REFUSALS:
        if re.search(pattern, message):
            return _error(name, f"refuses the connection: {message}", hint)
    hint = "Check that the server is running and the URL is correct. See TSUZUKI_DATABASE_URL."
    return _error(name, f"is unavailable: {message}", hint)


def _not_permitted(problem: BaseException | None, url: URL) -> NotPermitted:
    return NotPermitted(
        f"database {_shown(url)} denies access: {_first_line(problem)}",
        hint="Let the owner grant it, for tables: GRANT CREATE, USAGE ON SCHEMA public TO the user.",
        code="database_privilege",
    )


def _shown(url: URL) -> str:
    return url.difference_update_query(["password", "sslpassword"]).render_as_string(
        hide_password=True
    )


def _first_line(problem: BaseException | None) -> str:
    return next(iter(str(problem or "").strip().splitlines()), "no answer")


def _error(name: str, what: str, hint: str, *, heals: bool = True) -> Unreachable:
    return Unreachable(
        f"the database {name} {what}",
        hint=hint,
        code="database",
        retry_after_seconds=RETRY_AFTER_SECONDS if heals else None,
    )
