"""The outcome of an execution, as a value. The worker turns it into at most one move of the run."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tsuzuki.model.states import Reason


class StopCause(StrEnum):
    """Why the worker stopped an execution before it ended by itself."""

    FENCED = "fenced"
    """This worker does not own the run any more: an operator canceled it, or the leader replaced it or
    failed it as lost. Nothing is written."""

    CANCELED = "canceled"
    """Its cancel was requested while its handler held its row. The run ends as CANCELED when the row is free."""

    REPLACED = "replaced"
    """The leader requested the same, because a newer run of its job replaces it."""

    TIMEOUT = "timeout"
    """It ran longer than the timeout of its job."""

    SHUTDOWN = "shutdown"
    """This worker shuts down. The run is retried at once on another one."""

    NOT_CONFIRMED = "not_confirmed"
    """The worker could not confirm in time that it still owns the run."""


@dataclass(frozen=True, kw_only=True)
class Succeeded:
    """The handler returned. `result` is JSON."""

    result: Any = None


SUCCEEDED = Succeeded()
"""Without a result, as most handlers return none. Shared, to save one object per run."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The handler raised, or its process failed. `retry_after_seconds` is what a server asked for, `result`
    what was done before."""

    reason: Reason
    error: str
    retry_after_seconds: float | None = None
    result: Any = None


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """The worker stopped it before it ended by itself."""

    cause: StopCause


Outcome = Succeeded | Failed | Stopped
