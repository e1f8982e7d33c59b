"""What a driver complains about, in our own words: a database that is away, full or may not be written."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, StatementError
from sqlalchemy.exc import OperationalError as SqlOperationalError

from tsuzuki.model.errors import TsuzukiError, Unreachable

BUSY_SECONDS = 60.0
"""So long a writer waits for another process that writes the same SQLite file."""

RETRY_AFTER_SECONDS = 1.0
"""What was in the way may be gone by then."""


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Turn a driver's complaint about the database itself into `Unreachable`."""
    try:
        yield
    except (SqlOperationalError, InterfaceError) as problem:
        if getattr(problem.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            raise  # a mistake in the statement, which says nothing about the database
        raise _unreachable(problem.orig, url) from problem
    except DBAPIError as problem:
        is_known = getattr(problem.orig, "sqlstate", None) in POSTGRES_PROBLEMS
        if problem.connection_invalidated or is_known or _is_unusable(problem):
            raise _unreachable(problem.orig, url) from problem
        raise
    except StatementError as problem:
        # A value that one of our own column types refused, dressed up by SQLAlchemy.
        if isinstance(problem.orig, TsuzukiError):
            raise problem.orig from None
        raise


def _is_unusable(problem: DBAPIError) -> bool:
    """A file that is damaged or no database at all: SQLite has a wider class of error for it."""
    said = str(problem.orig)
    return "file is not a database" in said or "disk image is malformed" in said


SQLITE_PROBLEMS = (
    (
        "unable to open database file",
        "cannot be opened",
        "Does the folder exist, and may you write there?",
    ),
    (
        "readonly database",
        "may not be written",
        "Give this user write access to the file and its folder.",
    ),
    ("disk is full", "has no room left", "Free some space; nothing that was confirmed is lost."),
    ("disk i/o error", "cannot be read or written", "Look at the disk; then run: tsuzuki db check"),
    (
        "file is not a database",
        "is not an SQLite database",
        "Is the path right? Nothing was changed.",
    ),
    ("malformed", "is damaged", "Restore a backup; run: tsuzuki db check"),
    (
        "is locked",
        f"was held by another writer for {BUSY_SECONDS:.0f} s",
        "Find what holds it, then try again.",
    ),
)


POSTGRES_PROBLEMS = {
    "25006": ("may not be written", "Is it a standby? Use the URL of the server that is written."),
    "40P01": ("ended this, because two waited for each other", "Nothing was changed; try again."),
    "53100": ("has no room left", "Free some space; nothing that was confirmed is lost."),
    "55P03": ("did not let us in time at what another holds", "Nothing was changed; try again."),
    "57014": ("ended this, because it took too long", "Is its statement_timeout very short?"),
}
"""By the code that PostgreSQL gives with an error."""

TOO_MANY = ("too many clients already", "remaining connection slots")
"""Said while connecting, where the driver keeps no code."""

MORE_CONNECTIONS = "Raise max_connections there, or run fewer processes: each keeps about four."


def _unreachable(problem: BaseException | None, url: URL) -> Unreachable:
    said = next(iter(str(problem or "").strip().splitlines()), "no answer")
    if url.get_backend_name() == "sqlite":
        for sign, words, hint in SQLITE_PROBLEMS:
            if sign in said.lower():
                return _complaint(str(url.database), words, hint)
    shown = url.difference_update_query(["password", "sslpassword"])
    name = shown.render_as_string(hide_password=True)
    if any(sign in said for sign in TOO_MANY):
        return _complaint(name, "has no connection left", MORE_CONNECTIONS)
    known = POSTGRES_PROBLEMS.get(getattr(problem, "sqlstate", None) or "")
    if known is not None:
        return _complaint(name, *known)
    hint = "Is the server running, and is the URL right? See TSUZUKI_DATABASE_URL."
    return _complaint(name, f"does not answer: {said}", hint)


def _complaint(name: str, words: str, hint: str) -> Unreachable:
    return Unreachable(
        f"the database {name} {words}",
        hint=hint,
        code="database",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )
