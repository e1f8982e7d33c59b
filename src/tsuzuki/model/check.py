"""Checks: what was looked at, what was found, and what to do about it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tsuzuki.model.errors import TsuzukiError

SERVICE_STEP = "Check that the service is running at this address and reachable from here."


class CheckResult(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """It works, or is not used, and should be looked at."""

    FAIL = "fail"
    """It does not work."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at. `next_step` is None if there is nothing to do."""

    what: str
    result: CheckResult
    found: str
    next_step: str | None = None


def ok(what: str, found: str) -> Check:
    return Check(what=what, result=CheckResult.OK, found=found)


def warning(what: str, found: str, next_step: str) -> Check:
    return Check(what=what, result=CheckResult.WARN, found=found, next_step=next_step)


def fault(what: str, found: str, next_step: str | None) -> Check:
    return Check(what=what, result=CheckResult.FAIL, found=found, next_step=next_step)


def fault_of(what: str, problem: TsuzukiError, next_step: str | None = None) -> Check:
    """What an error says, with its place; `next_step` is for one without a hint."""
    place = f"{problem.place}: " if problem.place else ""
    return fault(what, f"{place}{problem.message}", problem.hint or next_step)


def checked(what: str, look: Callable[[], str], next_step: str = SERVICE_STEP) -> Check:
    """`look` says what was found, or raises a `TsuzukiError`."""
    try:
        return ok(what, look())
    except TsuzukiError as problem:
        return fault_of(what, problem, next_step)
