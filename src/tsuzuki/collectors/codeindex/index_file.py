"""The index file of a tree: where it is, opening it, and transactions that check the writer's token.

It lies in the user's cache folder (or `TSUZUKI_CODEINDEX_FOLDER`) under a name made from the real path of the root. A
file that is corrupt is renamed, never deleted, and replaced by an empty one. One of a newer version is left
alone: we use a file beside it.
"""

import hashlib
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Self

import platformdirs

from tsuzuki.collectors.codeindex.queries import meta
from tsuzuki.collectors.codeindex.queries.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import Conflict, Fenced, FileUnusable

FOLDER_VARIABLE = "TSUZUKI_CODEINDEX_FOLDER"
BUSY_SECONDS = 20.0
SUFFIX = ".sqlite"


class IndexCorrupt(FileUnusable):
    """The index file is damaged. The next build starts a new one."""

    code = "index_corrupt"


class NewerIndex(Exception):
    """The file was written by a newer version of Tsuzuki."""


def index_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where index files are kept."""
    named = environ.get(FOLDER_VARIABLE)
    return Path(named) if named else platformdirs.user_cache_path("tsuzuki") / "codeindex"


def index_path(root: Path, folder: Path) -> Path:
    """The index file of a tree: the end of its name for people, a hash of the real path for us."""
    real = os.path.realpath(root)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(real).name)[:40] or "tree"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return folder / f"{name}-{digest}{SUFFIX}"


class IndexFile:
    """An open index file. Of one thread; `close` it, or use it in a `with`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, notes: tuple[str, ...]) -> None:
        self.path = path
        self.connection = connection
        self.notes = notes
        """What was found wrong with the file and what was done about it, for people."""

    @classmethod
    def open(cls, root: Path, *, folder: Path | None = None, clock: Clock | None = None) -> Self:
        """Open the index of a tree for writing. It is made if it is not there, and made anew if it is
        corrupt."""
        path = index_path(root, folder or index_folder())
        try:
            return cls._opened(path, root, ())
        except NewerIndex:
            beside = path.with_suffix(f".v{SCHEMA_VERSION}{SUFFIX}")
            note = (
                f"{path} is from a newer version of Tsuzuki and was not changed; {beside.name} is "
                "used instead"
            )
            return cls._opened(beside, root, (note,))
        except IndexCorrupt:
            moved = set_aside(path, clock or SystemClock())
            note = f"the index was corrupt; it was kept as {moved}, and a new one is built"
            return cls._opened(path, root, (note,))

    @classmethod
    def open_existing(cls, root: Path, *, folder: Path | None = None) -> Self | None:
        """Open the index of a tree for answers; None if there is none. Nothing is made or moved. Raises
        `IndexCorrupt`."""
        path = index_path(root, folder or index_folder())
        for candidate in (path, path.with_suffix(f".v{SCHEMA_VERSION}{SUFFIX}")):
            with suppress(NewerIndex):
                if candidate.exists():
                    return cls.open_path(candidate)
        return None

    @classmethod
    def open_path(cls, path: Path) -> Self:
        """Open an index file that is there."""
        connection = _connect(path, mode="rw")
        try:
            with understood(path):
                _require_tables(connection)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection, ())

    @classmethod
    def _opened(cls, path: Path, root: Path, notes: tuple[str, ...]) -> Self:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as problem:
            raise _unwritable(path, problem.strerror or str(problem)) from None
        if not path.exists():
            _create(path, root)
        return cls(path, _prepared(path, root), notes)

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def reading(self) -> AbstractContextManager[None]:
        """Around statements that read: what SQLite finds wrong with the file becomes an error of ours."""
        return understood(self.path)

    @contextmanager
    def transaction(
        self, may_write: Callable[[sqlite3.Connection], bool]
    ) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its start. `may_write` is the guard that is looked at
        inside it; if it is false nothing is written and `Fenced` is raised."""
        with understood(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                self._require(may_write)
                yield self.connection
            except BaseException:
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def _require(self, may_write: Callable[[sqlite3.Connection], bool]) -> None:
        if not may_write(self.connection):
            raise Fenced(f"another process now writes {self.path}")


def set_aside(path: Path, clock: Clock) -> Path:
    """Rename a corrupt index file, and its log with it."""
    moved = path.with_suffix(f".corrupt-{int(clock.now().timestamp() * 1000)}")
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{end}").rename(f"{moved}{end}")
    return moved


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Errors of SQLite as errors of ours."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise Conflict(
                f"the index {path} is locked by another process", code="index_busy"
            ) from None
        raise _unwritable(path, str(problem)) from None
    except sqlite3.DatabaseError as problem:
        if isinstance(problem, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        raise IndexCorrupt(f"{path} is corrupt: {problem}", hint=_REBUILD) from None


_REBUILD = "Rebuild it with: tsuzuki index build"


def _unwritable(path: Path, why: str) -> FileUnusable:
    return FileUnusable(
        f"cannot use the index {path}: {why}",
        hint="Free some disk space or change the file's permissions, or keep indexes elsewhere "
        f"with {FOLDER_VARIABLE}.",
        code="index_unwritable",
    )


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    with understood(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_SECONDS,
            check_same_thread=False,
        )
        try:
            # Checking both keys of every reference is a quarter of the writer's time. `queries.files` removes
            # what belongs to a file together with it.
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -32768")
            # A build writes the pages of its indexes again and again: they go to the file once per 32 MB of log.
            connection.execute("PRAGMA wal_autocheckpoint = 8000")
        except BaseException:
            connection.close()
            raise
    return connection


def _create(path: Path, root: Path) -> None:
    """Make an index under a temporary name and link it into place, unless another process was first. SQLite answers
    with I/O errors where one process turns on the log of a new file while another opens or closes it."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        _prepared(temporary, root).close()
        # It is there by now; or the file system has no links, and it is made in place.
        with suppress(OSError):
            os.link(temporary, path)
    finally:
        for end in ("", "-wal", "-shm"):
            Path(f"{temporary}{end}").unlink(missing_ok=True)


def _prepared(path: Path, root: Path) -> sqlite3.Connection:
    connection = _connect(path, mode="rwc")
    try:
        with understood(path):
            _prepare(connection, root)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, root: Path) -> None:
    """Make the tables if there are none. Two processes may do so at once: the second finds them."""
    if meta.schema_version(connection, APPLICATION_ID) == 0:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if meta.schema_version(connection, APPLICATION_ID) == 0:
                _make_tables(connection, root)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    _require_tables(connection)


def _make_tables(connection: sqlite3.Connection, root: Path) -> None:
    for statement in TABLES.split(";\n"):
        connection.execute(statement)
    meta.put(connection, "root", printable(os.path.realpath(root)))
    meta.put(connection, "id", secrets.token_hex(8))
    meta.put_schema_version(connection, APPLICATION_ID, SCHEMA_VERSION)


def _require_tables(connection: sqlite3.Connection) -> None:
    version = meta.schema_version(connection, APPLICATION_ID)
    if version > SCHEMA_VERSION:
        raise NewerIndex
    if 0 < version < SCHEMA_VERSION:
        raise sqlite3.DatabaseError("it was made by an earlier version of Tsuzuki")
    if not meta.is_complete(connection):
        raise sqlite3.DatabaseError("tables are missing")


def printable(path: str) -> str:
    """A path as text that can be stored: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
