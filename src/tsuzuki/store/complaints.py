"""What a driver complains about, in our own words: a database that is away, full or may not be written."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InterfaceError, StatementError
from sqlalchemy.exc import OperationalError as SqlOperationalError

from tsuzuki.model.errors import TsuzukiError, Unreachable

BUSY_SECONDS = 60.0
"""So long a writer waits for another process that writes the same SQLite file."""


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Turn a driver's complaint about the database itself into `Unreachable`."""
    try:
        yield
    except (SqlOperationalError, InterfaceError) as problem:
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
    "53300": ("has no connection left", "Raise its max_connections, or run fewer processes."),
    "55P03": ("did not let us in time at what another holds", "Nothing was changed; try again."),
    "57014": ("ended this, because it took too long", "Is its statement_timeout very short?"),
}
"""By the code that PostgreSQL gives with an error."""


def _unreachable(problem: BaseException | None, url: URL) -> Unreachable:
    said = next(iter(str(problem or "").strip().splitlines()), "no answer")
    if url.get_backend_name() == "sqlite":
        for sign, words, hint in SQLITE_PROBLEMS:
            if sign in said.lower():
                return Unreachable(
                    f"the database {url.database} {words}", hint=hint, code="database"
                )
    shown = url.difference_update_query(["password", "sslpassword"])
    name = shown.render_as_string(hide_password=True)
    known = POSTGRES_PROBLEMS.get(getattr(problem, "sqlstate", None) or "")
    if known is not None:
        words, hint = known
        return Unreachable(
            f"the database {name} {words}", hint=hint, code="database", retry_after_seconds=1.0
        )
    return Unreachable(
        f"the database {name} does not answer: {said}",
        hint="Is the server running, and is the URL right? See TSUZUKI_DATABASE_URL.",
        code="database",
        retry_after_seconds=1.0,
    )
