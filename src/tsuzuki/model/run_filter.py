"""Which runs a list, a count or a bulk action is about: every condition holds, and what is excluded is left out."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from tsuzuki.model.states import LIVE_STATES, Outcome, Reason, RunState, Trigger


@dataclass(frozen=True, kw_only=True)
class RunFilter:
    """Which runs to list, newest first. `before_id` continues a page. An empty set means any."""

    job_name: str | None = None
    states: frozenset[RunState] = frozenset()
    worker_id: str | None = None
    reason: Reason | None = None
    before_id: int | None = None
    limit: int = 50
    job_names: frozenset[str] = frozenset()
    excluded_job_names: frozenset[str] = frozenset()
    excluded_states: frozenset[RunState] = frozenset()
    worker_ids: frozenset[str] = frozenset()
    excluded_worker_ids: frozenset[str] = frozenset()
    reasons: frozenset[Reason] = frozenset()
    excluded_reasons: frozenset[Reason] = frozenset()
    triggers: frozenset[Trigger] = frozenset()
    excluded_triggers: frozenset[Trigger] = frozenset()
    outcomes: frozenset[Outcome] = frozenset()
    excluded_outcomes: frozenset[Outcome] = frozenset()
    concurrency_key: str | None = None
    event_id: int | None = None
    retry_of: int | None = None
    origin_id: int | None = None
    failure_group: str | None = None
    """Failed for this cause: the id of a group of failures."""
    search: str | None = None
    """Part of the error, of the name of the job or of the concurrency key, in upper or lower case."""
    is_retried: bool | None = None
    """Whether another run retries it; None: either."""
    created_from: datetime | None = None
    created_until: datetime | None = None
    finished_from: datetime | None = None
    finished_until: datetime | None = None
    """From a time on, and until just before one."""

    @property
    def wanted_states(self) -> frozenset[RunState]:
        """Empty: any."""
        if not self._narrows_states:
            return self.states
        chosen = (self.states or frozenset(RunState)) - self.excluded_states
        if not (self.outcomes or self.excluded_outcomes):
            return chosen
        ended = {outcome.state for outcome in self.wanted_outcomes}
        return chosen & (ended if self.outcomes else ended | LIVE_STATES)

    @property
    def wanted_outcomes(self) -> frozenset[Outcome]:
        """How a run in it may have ended."""
        return (self.outcomes or frozenset(Outcome)) - self.excluded_outcomes

    @property
    def is_empty(self) -> bool:
        """No run can be in it: its conditions on state and outcome exclude each other."""
        return self._narrows_states and not self.wanted_states

    @property
    def _narrows_states(self) -> bool:
        return bool(self.excluded_states or self.outcomes or self.excluded_outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Its conditions as JSON, without the page. The inverse of `from_dict`."""
        return {
            field.name: _as_json(value)
            for field in fields(self)
            if field.name not in _PAGE
            for value in [getattr(self, field.name)]
            if value != field.default
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "RunFilter":
        return cls(**{name: _from_json(name, value) for name, value in stored.items()})


_PAGE = frozenset({"before_id", "limit"})
_ENUMS: Mapping[str, type[StrEnum]] = {
    "state": RunState,
    "reason": Reason,
    "trigger": Trigger,
    "outcome": Outcome,
}


def _as_json(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    return value.isoformat() if isinstance(value, datetime) else value


def _from_json(name: str, value: Any) -> Any:
    if name.endswith(("_from", "_until")):
        return datetime.fromisoformat(value)
    of = _ENUMS.get(name.removeprefix("excluded_").removesuffix("s"), str)
    if isinstance(value, list):
        return frozenset(of(one) for one in value)
    return of(value) if isinstance(value, str) else value
