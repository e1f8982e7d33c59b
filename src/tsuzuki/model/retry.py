"""Retries: whether an unsuccessful run is retried, and after which backoff.

A retry is a new run. Failures that a retry cannot repair are final at once. If the worker was the cause and not
the job, the run is retried and that does not use up a retry: always and at once after a graceful shutdown of the
worker; after its loss as `model.losses` has it, because a job that kills its worker each time must stop at some
point; and as often, after growing waits, if the worker turned out to lack the handler: another one may have it.
"""

import math
from dataclasses import dataclass
from random import Random

from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.losses import NO_LOSSES, Losses, with_jitter
from tsuzuki.model.states import Reason, RunState

_RETRIED_STATES = frozenset({RunState.FAILED, RunState.TIMED_OUT})
LOSSES = frozenset({Reason.WORKER_LOST, Reason.NOT_CONFIRMED})
_NEVER_RETRIED = frozenset({Reason.ARGUMENTS_INVALID, Reason.JOB_DELETED})
# Every factor that differs noticeably from 1 reaches its cap in fewer steps.
_EXPONENT_MAX = 100_000


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How many retries, with which backoff. Exponential: the delay grows from `initial_seconds` by `factor` with
    each retry up to `cap_seconds`, and is varied at random by up to `jitter` of itself either way."""

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
                f"invalid max_retries: {self.max_retries}", hint="Use a whole number."
            )

    def delay_seconds(self, retries_used: int, random: Random) -> float:
        """The delay before the next retry, after `retries_used` retries."""
        backoff = self._backoff_seconds(retries_used)
        jittered = backoff * (1 + random.uniform(-self.jitter, self.jitter))
        return min(max(jittered, 0.0), self.cap_seconds)

    def _backoff_seconds(self, retries_used: int) -> float:
        try:
            growth = self.factor ** min(retries_used, _EXPONENT_MAX)
        except OverflowError:
            growth = math.inf if self.initial_seconds else 1.0
        return min(self.initial_seconds * growth, self.cap_seconds)


@dataclass(frozen=True, kw_only=True)
class RetryDecision:
    """Retry after `delay_seconds`; the new run has `retries_used` and `losses`."""

    delay_seconds: float
    retries_used: int
    losses: Losses = NO_LOSSES


def decide_retry(  # noqa: PLR0911, PLR0913 -- each reason has its rule, and each fact about the run its name
    policy: RetryPolicy,
    *,
    state: RunState,
    reason: Reason | None,
    retries_used: int,
    losses: Losses,
    losses_max: int,
    random: Random,
    lost_alone: bool = False,
    may_be_elsewhere: bool = False,
    retry_after_seconds: float | None = None,
    next_tick_seconds: float | None = None,
) -> RetryDecision | None:
    """Whether the run that ended in `state` because of `reason` is retried; None means no.

    `lost_alone`: its worker fell silent, and no other at the same time. `may_be_elsewhere`: a handler that its worker
    did not have, another one may have. `retry_after_seconds` is what a server
    asked for; it is honoured even beyond the cap. `next_tick_seconds`: until the next tick that the retry would
    hold while it waits.
    """
    if state not in _RETRIED_STATES or reason in _NEVER_RETRIED:
        return None
    asked = retry_after_seconds or 0.0
    if reason is Reason.WORKER_SHUTDOWN:
        return RetryDecision(delay_seconds=asked, retries_used=retries_used, losses=losses)
    if reason is Reason.HANDLER_UNKNOWN:
        allowed = losses.next_counted(losses_max) if may_be_elsewhere else None
        wait = with_jitter(losses.hand_back_wait_seconds, random)
        return allowed and RetryDecision(
            delay_seconds=wait, retries_used=retries_used, losses=allowed
        )
    is_free = reason is Reason.NOT_CONFIRMED or not lost_alone
    if reason in LOSSES and is_free and (more := losses.next_free(losses_max)):
        wait = with_jitter(losses.free_wait_seconds_before(next_tick_seconds), random)
        return RetryDecision(delay_seconds=max(wait, asked), retries_used=retries_used, losses=more)
    if reason in LOSSES and (more := losses.next_counted(losses_max)):
        return RetryDecision(delay_seconds=asked, retries_used=retries_used, losses=more)
    if retries_used >= policy.max_retries:
        return None
    backoff = policy.delay_seconds(retries_used, random)
    return RetryDecision(
        delay_seconds=max(backoff, asked), retries_used=retries_used + 1, losses=losses
    )


def _require(name: str, value: float, *, at_least: int, at_most: int = 1_000_000_000) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not at_least <= value <= at_most:
        raise ConfigurationError(
            f"invalid {name}: {value!r}", hint=f"Use a number from {at_least} to {at_most}."
        )
