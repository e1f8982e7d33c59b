"""How an execution ended, as a value. The worker turns it into exactly one move."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tsuzuki.model.states import Reason


class StopCause(StrEnum):
    """Why we ended an execution that had not ended by itself."""

    CANCELED = "canceled"
    """The run is no longer RUNNING: somebody canceled or replaced it. Nothing is written."""

    FENCED = "fenced"
    """The run was taken from us. Nothing is written."""

    TIMEOUT = "timeout"
    """Longer than its job allows."""

    SHUTDOWN = "shutdown"
    """This worker goes away. The run is retried at once elsewhere."""

    NOT_CONFIRMED = "not_confirmed"
    """We could not confirm in time that the run is still ours."""


@dataclass(frozen=True, kw_only=True)
class Succeeded:
    """The handler returned. `result` is JSON."""

    result: Any = None


SUCCEEDED = Succeeded()
"""With nothing to tell, as most do."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The handler raised, or its process ended badly."""

    reason: Reason
    error: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """We stopped it before it ended by itself."""

    cause: StopCause


Outcome = Succeeded | Failed | Stopped
