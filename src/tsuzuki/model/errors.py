"""Every error Tsuzuki raises on purpose, as one tree.

    TsuzukiError
    ├── UsageError            the call itself is wrong
    │   └── ReadTimedOut      it asks for more than can be read in the time it may take
    ├── ConfigurationError    a file, a variable or a definition is wrong
    │   └── ScheduleError     a schedule that cannot be parsed or is never due
    ├── NotFound              no such job, run, worker, setting
    ├── Unreachable           the database does not answer, or cannot be written
    │   ├── NotListening      it answers, but wake-ups of other processes cannot arrive by it
    │   ├── SchemaMismatch    the database belongs to another version of Tsuzuki
    │   ├── ServiceUnreachable an outside service refuses, or does not answer
    │   └── FileUnusable      a file or folder cannot be read or written
    ├── Conflict              another caller was first (a lost race); read again and decide again
    │   ├── Fenced            this worker does not own the run any more: stop, write nothing
    │   └── VersionMismatch   an edit was made against an older version
    ├── NotPermitted          the caller may not do this
    │   └── NotAuthenticated  the caller did not prove who it is: a token, a session, a password is refused
    ├── WaitTimedOut          what was waited for did not happen in time
    ├── WorkFailed            a build or a collection that was waited for failed
    │   └── RunFailed         a run that was waited for failed for good, with all its retries
    ├── IncompleteRun         a handler did part of its work, and `result` says which
    └── Interrupted           the user asked to stop

An error has four facts for its caller: a stable `code`, whether a retry can help (`permanent`), when to retry
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
    """The call itself is wrong: an option missing, a value out of bounds."""

    code = "usage"


class ReadTimedOut(UsageError):
    """A read was cancelled because it took longer than it may. A narrower one will do."""

    code = "read_timed_out"


class ConfigurationError(TsuzukiError):
    """A file, an environment variable or a definition is wrong. `place` is its position."""

    code = "configuration"


def extra_missing(message: str, *, extra: str, code: str = "extra_missing") -> ConfigurationError:
    """A library that comes with an extra of the distribution is not installed."""
    hint = f"Install it with: pip install 'tsuzuki[{extra}]'"
    return ConfigurationError(message, hint=hint, code=code)


class ScheduleError(ConfigurationError):
    """A schedule that cannot be parsed, or that is never due."""

    code = "schedule"


class NotFound(TsuzukiError):
    """No such object by that name or number."""

    code = "not_found"


class Unreachable(TsuzukiError):
    """The database does not answer, or cannot be written; the parent of the same for services and files."""

    code = "unreachable"
    permanent = False


class NotListening(Unreachable):
    """The database answers, but wake-ups of other processes cannot arrive by it."""

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
    """An outside service refuses, or does not answer."""

    code = "service"


class FileUnusable(Unreachable):
    """A file or a folder cannot be read or written."""

    code = "file"


class Conflict(TsuzukiError):
    """Another caller was first: a lost race, not a fault. Read again and decide again."""

    code = "conflict"
    permanent = False


class Fenced(Conflict):
    """This worker does not own the run any more. Nothing more may be written for it."""

    code = "fenced"
    permanent = True


class VersionMismatch(Conflict):
    """An edit was made against an older version. `differences` are the keys, each with the current value and the
    one that was to be stored."""

    code = "version_mismatch"

    def __init__(
        self, message: str, *, differences: Sequence[tuple[str, Any, Any]] = (), **about: Any
    ) -> None:
        super().__init__(message, **about)
        self.differences = tuple(differences)


class NotPermitted(TsuzukiError):
    """The caller is authenticated, but may not do this."""

    code = "not_permitted"


class NotAuthenticated(NotPermitted):
    """The caller did not prove who it is: a token, a session, a password or a signature is refused."""

    code = "not_authenticated"


class WaitTimedOut(TsuzukiError):
    """What was waited for did not happen in time; it may still happen."""

    code = "wait_timed_out"
    permanent = False


class IncompleteRun(TsuzukiError):
    """A handler did part of its work. Its run fails, and `result` is stored with it."""

    code = "incomplete"

    def __init__(self, message: str, *, result: Any, **about: Any) -> None:
        super().__init__(message, **about)
        self.result = result


class WorkFailed(TsuzukiError):
    """Work that was waited for failed: a build, a collection, or a run."""

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
        """Why it ended so."""
        return self.run.reason


class Interrupted(TsuzukiError):
    """The user at the terminal, or the end of a server, asked to stop."""

    code = "interrupted"
    permanent = False
