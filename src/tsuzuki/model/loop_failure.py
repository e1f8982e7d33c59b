"""A loop of the engine that keeps failing."""

from dataclasses import dataclass
from datetime import datetime

FAILURES_MIN = 5
"""A loop is failing when that many steps in a row have failed. Fewer are an outage that it survives."""


@dataclass(frozen=True, kw_only=True)
class LoopFailure:
    """`failures` steps of the loop have failed in a row; `code` and `error` are of the last one."""

    loop: str
    failures: int
    since: datetime
    code: str
    error: str
