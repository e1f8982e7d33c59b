"""Every error Tsuzuki raises on purpose, as one tree.

    TsuzukiError
    ├── UsageError            the call itself is wrong
    ├── ConfigurationError    a file, a variable or a definition is wrong
    │   └── ScheduleError     a schedule that cannot be read or never comes
    ├── NotFound              no such job, run, worker, setting
    ├── Unreachable           a database or service does not answer, or cannot be written
    │   └── SchemaMismatch    the database belongs to another version of Tsuzuki
    ├── Conflict              somebody else was first; reading again tells what is true now
    │   └── Fenced            this run is no longer ours: stop, write nothing
    ├── NotPermitted          the caller may not do this
    ├── WaitTimedOut          what was waited for did not happen in time
    ├── RunFailed             a run that was waited for ended other than by success
    └── Interrupted           the person asked to stop

An error says four things to its caller: a stable `code`, whether trying again can help (`permanent`),
when (`retry_after_seconds`), and what to do next (`hint`). Faces translate the class, never the text.
"""

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a file something is wrong. Lines and columns count from 1."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


class TsuzukiError(Exception):
    """The root: something went wrong and we know what to say about it."""

    code: ClassVar[str] = "error"
    permanent: ClassVar[bool] = True

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        place: Place | None = None,
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
        """What a machine reads: only what is known, nothing empty."""
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


class ConfigurationError(TsuzukiError):
    """A file, an environment variable or a definition is wrong. `place` says where."""

    code = "configuration"


class ScheduleError(ConfigurationError):
    """A schedule that cannot be read, or that never comes."""

    code = "schedule"


class NotFound(TsuzukiError):
    """Nothing by that name or number."""

    code = "not_found"


class Unreachable(TsuzukiError):
    """A database or a service does not answer, or refuses to be written."""

    code = "unreachable"
    permanent = False


class SchemaMismatch(Unreachable):
    """The database's tables belong to another version of Tsuzuki."""

    code = "schema_mismatch"
    permanent = True


class Conflict(TsuzukiError):
    """Somebody else was first. Not a fault: read again and decide again."""

    code = "conflict"
    permanent = False


class Fenced(Conflict):
    """This run was taken from us. Whatever we still hold must not be written."""

    code = "fenced"
    permanent = True


class NotPermitted(TsuzukiError):
    """The caller is known and may not do this."""

    code = "not_permitted"


class WaitTimedOut(TsuzukiError):
    """What was waited for did not happen in time; it may still happen."""

    code = "wait_timed_out"
    permanent = False


class RunFailed(TsuzukiError):
    """A run whose result was asked for ended other than by success."""

    code = "run_failed"


class Interrupted(TsuzukiError):
    """The person at the terminal asked to stop."""

    code = "interrupted"
    permanent = False
