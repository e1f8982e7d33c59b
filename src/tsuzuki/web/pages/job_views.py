"""What the pages of jobs show of the past of a job: its newest runs, counts, durations and cadence."""

from tsuzuki.model.states import Outcome, Reason, RunState, Trigger
from tsuzuki.services.job_history import Cadence, JobPast, RecentRun
from tsuzuki.services.statistics import Outcomes
from tsuzuki.web.answers import Model, Moment


class RecentRunOut(Model):
    """A run that has ended. `seconds` is how long it took; null if it never started."""

    id: int
    state: RunState
    outcome: Outcome | None
    trigger: Trigger
    reason: Reason | None
    scheduled_for: Moment
    finished_at: Moment
    seconds: float | None
    covers_ticks: int


class CadenceOut(Model):
    """Seconds between two ticks of the schedule, and between two runs that were started for one, over the same
    stretch of time."""

    declared_seconds: float
    kept_seconds: float
    is_kept: bool


class JobPastOut(Model):
    """`recent` are the newest runs, oldest first; `live` counts unfinished runs by state, `ended` those of the window
    by outcome. Percentiles are exact, of the newest `duration_runs` runs; null if these are too few."""

    recent: list[RecentRunOut]
    longest_seconds: float
    live: dict[RunState, int]
    ended: dict[Outcome, int]
    duration_runs: int
    p50_seconds: float | None
    p95_seconds: float | None
    cadence: CadenceOut | None


def past_out(past: JobPast, outcomes: Outcomes) -> JobPastOut:
    recent = [_recent_out(run) for run in past.ended]
    durations = past.durations
    return JobPastOut(
        recent=recent,
        longest_seconds=max((run.seconds or 0.0 for run in recent), default=0.0),
        live=dict(past.live),
        ended=dict(sorted(outcomes.runs.items())),
        duration_runs=durations.runs if durations else 0,
        p50_seconds=durations.p50_seconds if durations else None,
        p95_seconds=durations.p95_seconds if durations else None,
        cadence=_cadence_out(past.cadence) if past.cadence else None,
    )


def _cadence_out(cadence: Cadence) -> CadenceOut:
    return CadenceOut(
        declared_seconds=cadence.declared_seconds,
        kept_seconds=cadence.kept_seconds,
        is_kept=cadence.is_kept,
    )


def _recent_out(run: RecentRun) -> RecentRunOut:
    return RecentRunOut(
        id=run.id,
        state=run.state,
        outcome=run.outcome,
        trigger=run.trigger,
        reason=run.reason,
        scheduled_for=run.scheduled_for,
        finished_at=run.finished_at,
        seconds=run.seconds,
        covers_ticks=run.covers_ticks,
    )
