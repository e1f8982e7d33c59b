"""What jobs did last: their newest runs in one statement, and the cadence that they keep."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from support.factories import (
    add_job,
    add_worker,
    create_run,
    end_by_shutdown,
    run_in_state,
    spec,
    take_lead,
)
from support.moving_clock import NOON, MovingClock
from support.query_plans import last_sent, ways_to
from support.statement_recorder import recorded
from tsuzuki.model.job import Job, JobSource
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import Outcome, Reason, RunState, Trigger
from tsuzuki.services.job_history import DURATIONS_OF, JobHistory, cadence_of, durations_of
from tsuzuki.services.statistics import RunStatistics
from tsuzuki.store import jobs
from tsuzuki.store.runs import recent_runs
from tsuzuki.store.runs.recent_runs import RecentRun
from tsuzuki.store.sql.database import Database

MINUTE = timedelta(minutes=1)


def stored_jobs(database: Database) -> dict[str, Job]:
    with database.read() as connection:
        return {job.spec.name: job for job in jobs.find(connection)}


def test_each_job_has_its_newest_runs_and_its_live_ones(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    term = take_lead(database)
    ended = [run_in_state(database, RunState.FAILED, term).id for _ in range(4)]
    other = add_job(database, spec("other"))
    create_run(database, other)
    add_job(database, spec("idle"))
    known = stored_jobs(database)
    found = JobHistory(database=database).of_jobs(known.values(), limit=3)
    assert [run.id for run in found[known["hello"].id].ended] == ended[1:]
    assert found[known["hello"].id].live == {}
    assert (list(found[other].ended), found[other].live) == ([], {RunState.PENDING: 1})
    assert list(found[known["idle"].id].ended) == []
    assert JobHistory(database=database).of_jobs([], limit=3) == {}


def test_a_run_that_a_shutdown_ended_is_not_a_result(
    database: Database, clock: MovingClock
) -> None:
    add_worker(database)
    term = take_lead(database)
    result = run_in_state(database, RunState.SUCCEEDED, term)
    end_by_shutdown(database, run_in_state(database, RunState.RUNNING, term).id)
    known = stored_jobs(database)
    found = JobHistory(database=database).of_jobs(known.values(), limit=3)
    assert [run.id for run in found[known["hello"].id].ended] == [result.id]


def test_the_newest_runs_are_found_by_their_index(database: Database) -> None:
    ids = [add_job(database, spec(name)) for name in ("one", "two")]
    with database.read() as connection, last_sent(connection) as sent:
        recent_runs.newest_ended(connection, ids, limit=20)
        if connection.dialect.name == "sqlite":
            ways = ways_to(connection, "newest", sent[-1])
            assert any("tsuzuki_ix_job_runs_ended_by_job" in way for way in ways), ways


def a_run(number: int, due: Any, **changes: Any) -> RecentRun:
    run = RecentRun(
        number, 1, RunState.SUCCEEDED, Trigger.TIME, None, due, due, due + MINUTE, covers_ticks=1
    )
    return run._replace(**changes)


def a_job(schedule: object) -> Job:
    return Job(
        id=1,
        spec=spec(schedule=parse_schedule(schedule)),
        source=JobSource.DATABASE,
        version=1,
        planned_until=NOON,
        created_at=NOON,
        updated_at=NOON,
    )


def test_a_schedule_that_drifts_is_seen() -> None:
    runs = [a_run(n, NOON + 30 * n * MINUTE) for n in range(5)]
    cadence = cadence_of(a_job("every 10m"), runs)
    assert cadence is not None
    assert (cadence.declared_seconds, cadence.kept_seconds) == (600.0, 1800.0)
    assert not cadence.is_kept


def test_days_without_a_tick_are_no_drift() -> None:
    monday = NOON.replace(hour=9) + timedelta(days=7 - NOON.weekday())
    runs = [a_run(n, monday + timedelta(days=day)) for n, day in enumerate((0, 1, 2, 3, 4, 7, 8))]
    cadence = cadence_of(a_job({"weekdays_at": "09:00"}), runs)
    assert cadence is not None
    assert cadence.is_kept


def test_only_runs_that_were_started_for_a_tick_count() -> None:
    runs = [
        a_run(1, NOON - MINUTE),
        a_run(2, NOON + MINUTE, trigger=Trigger.MANUAL),
        a_run(3, NOON + 10 * MINUTE, started_at=None, reason=Reason.LATE),
        a_run(4, NOON + 20 * MINUTE),
        a_run(5, NOON + 30 * MINUTE),
    ]
    assert cadence_of(a_job("every 10m"), runs) is None
    assert runs[2].seconds is None
    assert runs[3].seconds == 60.0


def test_days_are_those_of_the_zone(database: Database, clock: MovingClock) -> None:
    add_worker(database)
    term = take_lead(database)
    run_in_state(database, RunState.FAILED, term)
    statistics = RunStatistics(database=database)
    for zone, days_on in (("UTC", 0), ("Pacific/Kiritimati", 1)):
        found = statistics.by_day("hello", days=3, zone=ZoneInfo(zone))
        assert [dict(day.outcomes.runs) for day in found] == [{}, {}, {Outcome.FAILED: 1}]
        assert found[-1].day == NOON.date() + timedelta(days=days_on)
    job_id = stored_jobs(database)["hello"].id
    assert statistics.of_jobs([job_id, 999], hours=24)[job_id].runs == {Outcome.FAILED: 1}
    assert statistics.of_jobs([999], hours=24)[999].runs == {}


def test_closed_hours_of_a_page_of_jobs_are_read_once(database: Database) -> None:
    statistics = RunStatistics(database=database)
    with recorded(database) as sent:
        for _ in range(2):
            statistics.of_jobs([1, 2], hours=720)
        statistics.of_jobs([1], hours=720)
    assert len([one for one in sent if "sum(tsuzuki_run_hours.runs)" in one]) == 2


def test_percentiles_need_ten_runs_and_are_of_the_newest_twenty() -> None:
    def took(count: int) -> list[RecentRun]:
        return [ended_run(number, seconds=float(number)) for number in range(1, count + 1)]

    assert durations_of(took(9)) is None
    found = durations_of(took(10))
    assert found is not None
    assert (found.runs, found.p50_seconds, found.p95_seconds) == (10, 5.0, 10.0)
    newest = durations_of(took(60))
    assert newest is not None
    assert (newest.runs, newest.p50_seconds, newest.p95_seconds) == (20, 50.0, 59.0)
    assert durations_of(took(60)[-DURATIONS_OF:]) == newest


def ended_run(run_id: int, *, seconds: float) -> RecentRun:
    return RecentRun(
        id=run_id,
        job_id=1,
        state=RunState.SUCCEEDED,
        trigger=Trigger.TIME,
        reason=None,
        scheduled_for=NOON,
        started_at=NOON,
        finished_at=NOON + timedelta(seconds=seconds),
        covers_ticks=1,
    )
