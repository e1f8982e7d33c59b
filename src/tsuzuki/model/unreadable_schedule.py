"""A stored schedule that this machine cannot read, because it lacks a time zone for example.

Its job is listed and its runs are executed as those of any other; only its ticks cannot be computed here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn

from tsuzuki.model.errors import ScheduleError


@dataclass(frozen=True, kw_only=True)
class UnreadableSchedule:
    """`stored` is kept as it is, so that a change of the job does not lose it."""

    stored: Mapping[str, Any] = field(hash=False)
    problem: ScheduleError = field(compare=False)

    def next_after(self, _t: datetime) -> NoReturn:
        raise ScheduleError(self.describe(), hint=self.problem.hint)

    def describe(self) -> str:
        return f"cannot be read here: {self.problem.message}"

    def as_mapping(self) -> dict[str, Any]:
        return dict(self.stored)
