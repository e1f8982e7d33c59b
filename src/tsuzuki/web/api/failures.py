"""`/failures`: failure groups; retry or acknowledge one."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.services.failures import FailureGroup, GroupPosition, group_as_dict
from tsuzuki.web.answers import IS_NUMBER, GivenMoment, Model, Moment, to_utc_text
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, Page, PageRequest, SearchedRows, count_of
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.bodies import INTEGER_MAX

router = ApiRouter("failures")

GroupId = Annotated[str, Path(min_length=1, max_length=200)]


class FailureGroupOut(Model):
    """Failures of one cause. `signature` is the error without what differs from run to run; secrets in it are
    masked. `is_open`: there is a failure that was not acknowledged."""

    id: str
    signature: str
    failures: int = Field(description="Number among the newest 20,000 failures.")
    jobs: int = Field(description="Number of unacknowledged failures among them.")
    first_failed_at: Moment
    last_failed_at: Moment
    last_run_id: int
    acknowledged_run_id: int | None
    acknowledged_at: Moment | None
    acknowledged_by: str | None
    is_open: bool
    job_names: list[str] = Field(description="Affected jobs.")


class FailureGroupDetail(FailureGroupOut):
    run_ids: list[int] = Field(description="Newest runs of the group, at most 50.")


class FailureQuery(PageRequest):
    since: GivenMoment | None = Field(
        None, description="Start of the time range (default: 7 days ago)."
    )
    acknowledged: bool = Field(False, description="Include acknowledged failures.")


class Acknowledgement(Model):
    through: Annotated[int, Field(ge=1, le=INTEGER_MAX), IS_NUMBER] | None = Field(
        None, description="Acknowledge only failures up to this run ID."
    )


class RetriedRun(Model):
    run_id: int
    new_run_id: int


class RefusedRun(Model):
    """A run that was not retried, and the code of why."""

    run_id: int
    code: str


class GroupRetryOut(Model):
    retried: list[RetriedRun]
    refused: list[RefusedRun]


def group_out(context: Context, group: FailureGroup) -> FailureGroupOut:
    return FailureGroupOut(**_values(context, group_as_dict(group)))


def _values(context: Context, values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "signature": context.mask(values["signature"])}


@router.get("/failures", right=Right.RUNS_READ)
def list_failures(
    context: Context, query: Annotated[FailureQuery, Query()]
) -> Page[FailureGroupOut]:
    """List groups of failures, the newest failure first. One that fails again moves to the front."""
    failures = context.application.failures

    def find(after: str | None, limit: int) -> list[FailureGroup]:
        return failures.find(
            since=query.since,
            with_acknowledged=query.acknowledged,
            limit=limit,
            after=None if after is None else read_position(after),
        )

    def find_first(
        after: str | None, limit: int
    ) -> list[FailureGroup] | SearchedRows[FailureGroup]:
        """Every group is made of the same failures: those of the first page are counted with it."""
        if after is not None or not query.count:
            return find(after, limit)
        groups = find(None, COUNT_MAX + 1)
        return SearchedRows(groups[:limit], count=count_of(len(groups)))

    return context.page(
        query,
        find=find_first,
        position=group_position,
        item=lambda group: group_out(context, group),
        count=lambda: count_of(len(find(None, COUNT_MAX + 1))),
    )


def group_position(group: FailureGroup) -> str:
    return f"{to_utc_text(group.last_failed_at)} {group.id}"


def read_position(position: str) -> GroupPosition:
    moment, _, group_id = position.partition(" ")
    return GroupPosition(datetime.fromisoformat(moment), group_id)


@router.get("/failures/{group_id}", right=Right.RUNS_READ, refuses=[404])
def get_failure_group(context: Context, group_id: GroupId) -> FailureGroupDetail:
    """One group: the jobs it hit, and its newest runs."""
    view = context.application.failures.get(group_id)
    return FailureGroupDetail(**_values(context, view.as_dict()))


@router.post("/failures/{group_id}/retry", right=Right.RUNS_OPERATE, refuses=[404])
def retry_failures(context: Context, group_id: GroupId) -> GroupRetryOut:
    """Retry the newest runs of a group, at most 500, that were not retried before."""
    done = context.application.failures.retry(group_id)
    return GroupRetryOut(
        retried=[RetriedRun(run_id=old, new_run_id=new) for old, new in done.retried.items()],
        refused=[RefusedRun(run_id=run_id, code=code) for run_id, code in done.refused.items()],
    )


@router.post("/failures/{group_id}/acknowledge", right=Right.RUNS_OPERATE, refuses=[404, 409])
def acknowledge_failures(
    context: Context, group_id: GroupId, body: Acknowledgement | None = None
) -> FailureGroupOut:
    """Acknowledge the failures of a group. A later failure opens it again."""
    through = None if body is None else body.through
    group = context.application.failures.acknowledge(group_id, through=through)
    return group_out(context, group)
