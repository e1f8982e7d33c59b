"""The filters of runs, each also as an exclusion: of a list, and of a bulk action."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, Field

from tsuzuki.model.states import Outcome, Reason, RunState, Trigger
from tsuzuki.services.runs import RunFilter
from tsuzuki.web.answers import GivenMoment
from tsuzuki.web.paging import PageRequest
from tsuzuki.web.problems import InvalidRequest, PartProblem
from tsuzuki.web.security.bodies import INTEGER_MAX

Id = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
Name = Annotated[str, Field(max_length=200)]
Names = Annotated[list[Name], Field(max_length=50)]


_STORED_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "job": ("job_name", "job_names"),
        "exclude_job": ("excluded_job_names",),
        "state": ("states",),
        "exclude_state": ("excluded_states",),
        "outcome": ("outcomes",),
        "exclude_outcome": ("excluded_outcomes",),
        "worker": ("worker_id", "worker_ids"),
        "exclude_worker": ("excluded_worker_ids",),
        "reason": ("reason", "reasons"),
        "exclude_reason": ("excluded_reasons",),
        "trigger": ("triggers",),
        "exclude_trigger": ("excluded_triggers",),
    }
)
"""How a stored filter names what is a list of values here."""


class RunConditions(BaseModel):
    """Every condition holds; of one with several values, one value must fit. Times need a zone."""

    job: Names = Field(default_factory=list, description="Include only runs of these jobs.")
    exclude_job: Names = Field(default_factory=list)
    state: list[RunState] = Field(default_factory=list, max_length=50)
    exclude_state: list[RunState] = Field(default_factory=list, max_length=50)
    outcome: list[Outcome] = Field(
        default_factory=list,
        max_length=50,
        description="Include only runs with one of these outcomes. SKIPPED is separate from CANCELED.",
    )
    exclude_outcome: list[Outcome] = Field(default_factory=list, max_length=50)
    worker: Names = Field(
        default_factory=list, description="Include only runs assigned to these workers."
    )
    exclude_worker: Names = Field(default_factory=list)
    reason: list[Reason] = Field(default_factory=list, max_length=50)
    exclude_reason: list[Reason] = Field(default_factory=list, max_length=50)
    trigger: list[Trigger] = Field(default_factory=list, max_length=50)
    exclude_trigger: list[Trigger] = Field(default_factory=list, max_length=50)
    concurrency_key: str | None = Field(None, max_length=500)
    event_id: Id | None = None
    retry_of: Id | None = None
    origin_id: Id | None = Field(None, description="Include only runs of this run's retry chain.")
    failure_group: str | None = Field(
        None, max_length=200, description="Include only runs of this failure group."
    )
    search: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Text in the error, job name or concurrency key.",
    )
    created_from: GivenMoment | None = None
    created_until: GivenMoment | None = Field(
        None, description="End of the time range (exclusive)."
    )
    finished_from: GivenMoment | None = None
    finished_until: GivenMoment | None = None

    def run_filter(self, *, where: str = "query", **page: Any) -> RunFilter:
        """Raises `InvalidRequest` for a filter that no run can match; `where` it stands in the request."""
        self._check(where)
        return RunFilter(
            job_names=frozenset(self.job),
            excluded_job_names=frozenset(self.exclude_job),
            states=frozenset(self.state),
            excluded_states=frozenset(self.exclude_state),
            outcomes=frozenset(self.outcome),
            excluded_outcomes=frozenset(self.exclude_outcome),
            worker_ids=frozenset(self.worker),
            excluded_worker_ids=frozenset(self.exclude_worker),
            reasons=frozenset(self.reason),
            excluded_reasons=frozenset(self.exclude_reason),
            triggers=frozenset(self.trigger),
            excluded_triggers=frozenset(self.exclude_trigger),
            concurrency_key=self.concurrency_key,
            event_id=self.event_id,
            retry_of=self.retry_of,
            origin_id=self.origin_id,
            failure_group=self.failure_group,
            search=self.search,
            created_from=self.created_from,
            created_until=self.created_until,
            finished_from=self.finished_from,
            finished_until=self.finished_until,
            **page,
        )

    def _check(self, where: str) -> None:
        impossible: list[PartProblem] = []
        for name in ("job", "state", "outcome", "worker", "reason", "trigger"):
            wanted, excluded = set(getattr(self, name)), set(getattr(self, f"exclude_{name}"))
            if wanted and wanted <= excluded:
                impossible.append(
                    _impossible(f"{where}.exclude_{name}", f"all values of {name} are excluded")
                )
        if set(self.exclude_state) == set(RunState):
            impossible.append(_impossible(f"{where}.exclude_state", "every state is excluded"))
        for name in ("created", "finished"):
            start, end = getattr(self, f"{name}_from"), getattr(self, f"{name}_until")
            if start and end and start >= end:
                impossible.append(
                    _impossible(f"{where}.{name}_until", f"{name}_until is not after {name}_from")
                )
        if impossible:
            raise InvalidRequest(impossible)


class RunQuery(RunConditions, PageRequest):
    """Which runs to list, and which page of them."""


def _impossible(where: str, why: str) -> PartProblem:
    return PartProblem(
        where=where, message=f"no run can match this filter: {why}", code="filter_impossible"
    )


def conditions_out(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored filter, with the names of `RunConditions`."""
    left = dict(stored)
    found: dict[str, list[Any]] = {}
    for name, stored_names in _STORED_NAMES.items():
        for value in (left.pop(stored_name) for stored_name in stored_names if stored_name in left):
            found.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return {**found, **left}
