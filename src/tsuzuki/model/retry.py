"""Whether a run that ended badly is tried again, and when.

A retry is a new run. Ends that trying again cannot mend are final at once. An end that was not the
job's doing, because its worker went away, is made good at once and costs the job none of its retries:
always when the worker was shut down in good order, and `losses_max` times when it was lost, because a job
that kills its worker each time must stop doing so.
"""

import math
from dataclasses import dataclass
from random import Random

from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.states import Reason, RunState

_RETRIED_STATES = frozenset({RunState.FAILED, RunState.TIMED_OUT})
_LOSSES = frozenset({Reason.WORKER_LOST, Reason.NOT_CONFIRMED})
_BEYOND_HELP = frozenset({Reason.HANDLER_UNKNOWN, Reason.ARGUMENTS_INVALID, Reason.JOB_DELETED})
# No factor that differs from one in a way anybody would notice needs more steps to its cap.
_EXPONENT_MAX = 100_000


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently. The wait grows from `initial_seconds` by `factor` with each
    retry up to `cap_seconds`, and is moved at random by up to `jitter` of itself either way."""

    max_retries: int = 0
    initial_seconds: float = 10.0
    factor: float = 2.0
    cap_seconds: float = 3600.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _require("max_retries", self.max_retries, at_least=0)
        _require("initial_seconds", self.initial_seconds, at_least=0)
        _require("factor", self.factor, at_least=1)
        _require("cap_seconds", self.cap_seconds, at_least=0)
        _require("jitter", self.jitter, at_least=0, at_most=1)
        if self.max_retries != int(self.max_retries):
            raise ConfigurationError(
                f"max_retries cannot be {self.max_retries}", hint="Use a whole number."
            )

    def delay_seconds(self, retries_used: int, random: Random) -> float:
        """How long to wait before the next retry, when `retries_used` have been made already."""
        backoff = self._backoff_seconds(retries_used)
        moved = backoff * (1 + random.uniform(-self.jitter, self.jitter))
        return min(max(moved, 0.0), self.cap_seconds)

    def _backoff_seconds(self, retries_used: int) -> float:
        try:
            growth = self.factor ** min(retries_used, _EXPONENT_MAX)
        except OverflowError:
            growth = math.inf if self.initial_seconds else 1.0
        return min(self.initial_seconds * growth, self.cap_seconds)


@dataclass(frozen=True, kw_only=True)
class RetryDecision:
    """Try again after `delay_seconds`; the new run carries `retries_used`."""

    delay_seconds: float
    retries_used: int


def decide_retry(
    policy: RetryPolicy,
    *,
    state: RunState,
    reason: Reason | None,
    attempt: int,
    retries_used: int,
    losses_max: int,
    random: Random,
    retry_after_seconds: float | None = None,
) -> RetryDecision | None:
    """Whether the run that ended in `state` because of `reason` is tried again; None means no.

    An `attempt` that no retry paid for was a loss; they are counted that way.
    `retry_after_seconds` is what the other side asked for; it is honoured even beyond the cap.
    """
    if state not in _RETRIED_STATES or reason in _BEYOND_HELP:
        return None
    losses = attempt - 1 - retries_used
    if reason is Reason.WORKER_SHUTDOWN or (reason in _LOSSES and losses < losses_max):
        return RetryDecision(delay_seconds=retry_after_seconds or 0.0, retries_used=retries_used)
    if retries_used >= policy.max_retries:
        return None
    backoff = policy.delay_seconds(retries_used, random)
    return RetryDecision(
        delay_seconds=max(backoff, retry_after_seconds or 0.0), retries_used=retries_used + 1
    )


def _require(name: str, value: float, *, at_least: int, at_most: int = 1_000_000_000) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not at_least <= value <= at_most:
        raise ConfigurationError(
            f"{name} cannot be {value!r}", hint=f"Use a number from {at_least} to {at_most}."
        )
