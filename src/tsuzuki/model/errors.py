"""The tree of all errors that Tsuzuki raises on purpose.

    TsuzukiError
    ├── UsageError            the call itself is wrong
    │   └── ReadTimedOut      a read took longer than its time limit
    ├── ConfigurationError    a file, an environment variable or a definition is wrong
    │   └── ScheduleError     a schedule that cannot be parsed or is never due
    ├── NotFound              an object does not exist
    ├── Unreachable           the database is unavailable or not writable
    │   ├── NotListening      the database cannot deliver wake-ups of other processes
    │   ├── SchemaMismatch    the database belongs to another version of Tsuzuki
    │   ├── ServiceUnreachable an outside service refused or is unavailable
    │   └── FileUnusable      a file or folder cannot be read or written
    ├── Conflict              another caller was first (a lost race): read again, then decide again
    │   ├── Fenced            this worker no longer owns the run: stop, write nothing
    │   └── VersionMismatch   an edit was made against an older version
    ├── NotPermitted          the caller lacks the permission
    │   └── NotAuthenticated  a token, session, password or signature was refused
    ├── WaitTimedOut          a wait took longer than its time limit
    ├── WorkFailed            a build or a collection that was waited for failed
    │   └── RunFailed         a run that was waited for failed for good, with all its retries
    ├── IncompleteRun         a handler did part of its work, described by `result`
    └── Interrupted           the user or a shutdown stopped the operation

An error tells its caller four things: a stable `code`, whether a retry can help (`permanent`), when to retry
(`retry_after_seconds`), and what to do next (`hint`). Interfaces translate the class, never the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.model.states import Reason, RunState


@dataclass(frozen=True, kw_only=True)
class FilePlace:
    """The position of an error in a file. Lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


class TsuzukiError(Exception):
    """The root of all errors that Tsuzuki raises on purpose."""

    code: ClassVar[str] = "error"
    permanent: ClassVar[bool] = True

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        place: FilePlace | None = None,
        retry_after_seconds: float | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place = place
        self.retry_after_seconds = retry_after_seconds
        self.specific_code = code or type(self).code

    def as_dict(self) -> dict[str, Any]:
        """For machines (JSON): only the fields that are set."""
        place = self.place
        known = {
            "code": self.specific_code,
            "message": self.message,
            "hint": self.hint,
            "file": place.file if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "retry_after_seconds": self.retry_after_seconds,
        }
        return {key: value for key, value in known.items() if value is not None}


class UsageError(TsuzukiError):
    """The call itself is wrong, such as a missing option or a value out of bounds."""

    code = "usage"


class ReadTimedOut(UsageError):
    """A read was canceled because it exceeded its time limit. A narrower selection may succeed."""

    code = "read_timed_out"


class ConfigurationError(TsuzukiError):
    """A file, an environment variable or a definition is wrong. `place` is the position of the mistake."""

    code = "configuration"


def extra_missing(message: str, *, extra: str, code: str = "extra_missing") -> ConfigurationError:
    """The error for a library of an optional extra that is not installed."""
    hint = f"Install it with: pip install 'tsuzuki[{extra}]'"
    return ConfigurationError(message, hint=hint, code=code)


class ScheduleError(ConfigurationError):
    """A schedule that cannot be parsed, or that is never due."""

    code = "schedule"


class NotFound(TsuzukiError):
    """An object with this name or number does not exist."""

    code = "not_found"


class Unreachable(TsuzukiError):
    """The database is unavailable or not writable. Parent of similar errors of services and files."""

    code = "unreachable"
    permanent = False


class NotListening(Unreachable):
    """The database responds but cannot deliver wake-ups of other processes."""

    code = "not_listening"
    permanent = True


class DatabaseReplaced(Unreachable):
    """The file of an SQLite database was deleted or replaced while this process used it."""

    code = "database_replaced"
    permanent = True


class SchemaMismatch(Unreachable):
    """The database's tables belong to another version of Tsuzuki."""

    code = "schema_mismatch"
    permanent = True


class ServiceUnreachable(Unreachable):
    """An outside service refused or is unavailable."""

    code = "service"


class FileUnusable(Unreachable):
    """A file or a folder cannot be read or written."""

    code = "file"


class Conflict(TsuzukiError):
    """Another caller was first (a lost race). Read again, then decide again."""

    code = "conflict"
    permanent = False


class Fenced(Conflict):
    """This worker no longer owns the run, so it must write nothing more for it."""

    code = "fenced"
    permanent = True


class VersionMismatch(Conflict):
    """An edit was based on an older version. `differences` has each key with its current and its intended value."""

    code = "version_mismatch"

    def __init__(
        self, message: str, *, differences: Sequence[tuple[str, Any, Any]] = (), **about: Any
    ) -> None:
        super().__init__(message, **about)
        self.differences = tuple(differences)


class NotPermitted(TsuzukiError):
    """The caller is authenticated but lacks the permission."""

    code = "not_permitted"


class NotAuthenticated(NotPermitted):
    """A token, session, password or signature was refused."""

    code = "not_authenticated"


class WaitTimedOut(TsuzukiError):
    """A wait exceeded its time limit; the awaited event may still happen."""

    code = "wait_timed_out"
    permanent = False


class IncompleteRun(TsuzukiError):
    """A handler did part of its work. Its run fails with `result` stored."""

    code = "incomplete"

    def __init__(self, message: str, *, result: Any, **about: Any) -> None:
        super().__init__(message, **about)
        self.result = result


class WorkFailed(TsuzukiError):
    """A build, collection or run failed while a caller waited for it."""

    code = "run_failed"


class RunFailed(WorkFailed):
    """A run that was waited for failed for good: `run` is its last attempt, `attempts` are all of them. If its function
    raised, that exception's name, message and traceback are here as text; of errors of Tsuzuki the name is their
    code."""

    def __init__(
        self,
        message: str,
        *,
        run: "Run",
        attempts: "Sequence[Run]",
        exception_name: str | None = None,
        exception_message: str | None = None,
        traceback: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.run = run
        self.attempts = tuple(attempts)
        self.exception_name = exception_name
        self.exception_message = exception_message
        self.traceback = traceback

    @property
    def state(self) -> "RunState":
        """How the last attempt ended: FAILED, TIMED_OUT or CANCELED."""
        return self.run.state

    @property
    def reason(self) -> "Reason | None":
        """Reason for that end."""
        return self.run.reason


class Interrupted(TsuzukiError):
    """The user or a shutdown of the server stopped the operation."""

    code = "interrupted"
    permanent = False
