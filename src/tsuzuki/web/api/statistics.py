"""`/statistics`: counts and durations of ended runs over time."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.model.states import Outcome
from tsuzuki.services.statistics import Outcomes
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter

router = ApiRouter("statistics")

HOURS_SHOWN_MAX = 24 * 31
Hours = Annotated[
    int, Query(ge=1, le=HOURS_SHOWN_MAX, description="Number of hours, including the current one.")
]
JobFilter = Annotated[str | None, Query(max_length=200, description="Include only this job.")]


class OutcomesOut(Model):
    """How many runs ended with each outcome, and how long those took that were started, to within a factor of two
    (null: fewer than ten were started)."""

    runs: dict[Outcome, int] = Field(examples=[{"succeeded": 118, "failed": 2, "skipped": 4}])
    p50_seconds: float | None
    p95_seconds: float | None
    total_seconds: float


class HourOut(OutcomesOut):
    hour: Moment = Field(description="Start of the hour.")


class HoursOut(Model):
    hours: list[HourOut]


class JobOutcomesOut(OutcomesOut):
    job: str


class JobsOut(Model):
    jobs: list[JobOutcomesOut]


def _values(outcomes: Outcomes) -> dict[str, Any]:
    return {
        "runs": dict(sorted(outcomes.runs.items())),
        "p50_seconds": outcomes.duration(0.5),
        "p95_seconds": outcomes.duration(0.95),
        "total_seconds": outcomes.seconds,
    }


@router.get("/statistics/hours", right=Right.RUNS_READ, refuses=[404])
def statistics_by_hour(context: Context, hours: Hours = 24, job: JobFilter = None) -> HoursOut:
    """What ended in each hour up to now, the oldest hour first; hours without a run are there too."""
    found = context.application.statistics.by_hour(hours=hours, job_name=job)
    return HoursOut(hours=[HourOut(hour=of.hour, **_values(of.outcomes)) for of in found])


@router.get("/statistics/jobs", right=Right.RUNS_READ)
def statistics_by_job(context: Context, hours: Hours = 24) -> JobsOut:
    """What ended in these hours together, for each job that had a run end in them, by name."""
    found = context.application.statistics.by_job(hours=hours)
    return JobsOut(
        jobs=[JobOutcomesOut(job=name, **_values(found[name])) for name in sorted(found)]
    )
