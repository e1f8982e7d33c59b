"""Job definitions: everything said comes back, changes do not overwrite each other."""

from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from support.factories import add_job, create_run, lose_last_change, read_run, spec, take_lead
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import Schedule, parse_schedule
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Database

EVERYTHING = JobSpec(
    name="nightly.report_1-b",
    handler="python",
    options={"function": "reports:nightly", "env": {"A": "1"}},
    arguments={"regions": ["eu", "us"], "depth": 3, "note": "続き\n🙂"},
    description="Über alles\nund mehr",
    enabled=False,
    schedule=parse_schedule("every 10m"),
    spread_seconds=7.5,
    on_event="order.paid",
    misfire=Misfire.ALL,
    catchup_window_seconds=0.1 + 0.2,
    concurrency_policy=ConcurrencyPolicy.REPLACE,
    max_concurrent=3,
    concurrency_key="region",
    max_concurrent_per_key=2,
    priority=-1000,
    timeout_seconds=1e-6,
    retry=RetryPolicy(max_retries=9, initial_seconds=0.5, factor=1.5, cap_seconds=7, jitter=0.25),
    tags=frozenset({"gpu", "eu"}),
)
SCHEDULES = [
    {"cron": "*/5 0-6 * * mon-fri", "timezone": "Asia/Tokyo"},
    {"every": "1h30m"},
    {"every": 90, "anchor": "2026-01-01T06:00:00Z"},
    {"daily_at": ["07:00", "19:30:15"], "timezone": "Europe/Berlin"},
    {"hourly_at_minute": [0, 15, 59], "timezone": "Asia/Kolkata"},
    {"weekdays_at": "09:00", "timezone": "America/New_York"},
    {"weekly": {"days": ["mon", "sun"], "at": ["08:00", "20:00"]}, "timezone": "UTC"},
]


def get(database: Database, job_id: int) -> Job:
    with database.read() as connection:
        job = jobs.get(connection, job_id)
    assert job is not None
    return job


def change(database: Database, job: Job, **changes: object) -> bool:
    with database.write() as connection:
        return jobs.change(connection, job=job, spec=replace(job.spec, **changes))  # type: ignore[arg-type]


def remove(database: Database, job: Job) -> bool:
    with database.write() as connection:
        return jobs.remove(connection, job=job)


def names(found: Iterable[Job]) -> list[str]:
    return [job.spec.name for job in found]


def test_the_full_example_differs_from_every_default() -> None:
    plain = JobSpec(name="x", handler="y")
    same = [
        f.name for f in fields(JobSpec) if getattr(plain, f.name) == getattr(EVERYTHING, f.name)
    ]
    assert same == []


@pytest.mark.parametrize("source", JobSource)
def test_everything_said_about_a_job_comes_back(
    database: Database, clock: MovingClock, source: JobSource
) -> None:
    with database.write() as connection:
        job_id = jobs.add(connection, EVERYTHING, source=source)
    now = clock.now()
    assert get(database, job_id) == Job(
        id=job_id,
        spec=EVERYTHING,
        source=source,
        version=1,
        planned_until=now,
        created_at=now,
        updated_at=now,
    )


def test_a_job_of_defaults_comes_back_too(database: Database) -> None:
    plain = JobSpec(name="x", handler="command")
    assert get(database, add_job(database, plain)).spec == plain


def test_the_names_of_jobs_come_without_those_that_were_removed(database: Database) -> None:
    gone = add_job(database, spec("b-gone"))
    for name in ("c", "a"):
        add_job(database, spec(name))
    assert remove(database, get(database, gone))
    with database.read() as connection:
        assert jobs.names(connection) == ["a", "c"]


def test_every_kind_of_schedule_comes_back(database: Database) -> None:
    for number, said in enumerate(SCHEDULES):
        schedule: Schedule = parse_schedule(said)
        job_id = add_job(database, spec(f"job-{number}", schedule=schedule))
        assert get(database, job_id).spec.schedule == schedule


def test_a_change_replaces_the_definition_and_raises_the_version(
    database: Database, clock: MovingClock
) -> None:
    job = get(database, add_job(database))
    clock.advance(60)
    assert change(database, job, priority=5, description="new")
    after = get(database, job.id)
    assert after.spec == replace(job.spec, priority=5, description="new")
    assert (after.version, after.updated_at, after.created_at) == (2, clock.now(), job.created_at)


def test_a_change_of_a_job_that_was_changed_since_is_refused(database: Database) -> None:
    job = get(database, add_job(database))
    assert change(database, job, priority=5)
    assert not change(database, job, priority=6)
    assert not remove(database, job)
    assert get(database, job.id).spec.priority == 5


def test_of_ten_changes_at_once_one_takes(database: Database) -> None:
    job = get(database, add_job(database))
    took = at_once(10, lambda number: change(database, job, priority=number + 1))
    assert sum(took) == 1
    after = get(database, job.id)
    assert (after.version, after.spec.priority) == (2, took.index(True) + 1)


def test_a_name_belongs_to_one_job(database: Database) -> None:
    add_job(database, spec("a"))
    with pytest.raises(IntegrityError):
        add_job(database, spec("a"))
    other = get(database, add_job(database, spec("b")))
    with pytest.raises(IntegrityError):
        change(database, other, name="a")


def test_a_removed_job_keeps_its_runs_and_frees_its_name(
    database: Database, clock: MovingClock
) -> None:
    job = get(database, add_job(database, spec("a")))
    run = create_run(database, job.id)
    clock.advance(5)
    assert remove(database, job)
    gone = get(database, job.id)
    assert (gone.deleted_at, gone.spec.enabled, gone.version) == (clock.now(), False, 2)
    assert read_run(database, run.id).job_name == "a"
    assert not remove(database, gone)
    assert not change(database, gone, priority=1)
    with database.read() as connection:
        assert jobs.get_by_name(connection, "a") is None
        assert jobs.find(connection) == []
    again = add_job(database, spec("a"))
    with database.read() as connection:
        found = jobs.get_by_name(connection, "a")
    assert found is not None
    assert (found.id, found.version, found.deleted_at) == (job.id, 3, None)
    assert found.id == again
    assert found.planned_until == clock.now()
    with pytest.raises(IntegrityError):
        add_job(database, spec("a"))


HOURLY = parse_schedule("every 1h")


def test_planning_advances_only_from_where_it_was_read(
    database: Database, clock: MovingClock
) -> None:
    term = take_lead(database)
    job = get(database, add_job(database, spec(schedule=HOURLY)))
    until = clock.now() + timedelta(hours=1)

    def advance(seen: Job) -> bool:
        with database.write() as connection:
            return jobs.advance_planning(connection, term=term, job=seen, planned_until=until)

    assert advance(job)
    assert not advance(job)
    after = get(database, job.id)
    assert (after.planned_until, after.version) == (until, job.version)
    assert change(database, after, priority=3)
    assert not advance(after)


def test_a_moment_is_kept_to_the_microsecond_in_any_zone(database: Database) -> None:
    term = take_lead(database)
    job = get(database, add_job(database))
    for moment in (
        datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ):
        with database.write() as connection:
            now = jobs.get(connection, job.id)
            assert now is not None
            assert jobs.advance_planning(connection, term=term, job=now, planned_until=moment)
        assert get(database, job.id).planned_until == moment
        assert get(database, job.id).planned_until.tzinfo is UTC


def test_jobs_are_found_by_name_source_schedule_and_event(database: Database) -> None:
    with database.write() as connection:
        jobs.add(connection, spec("c", schedule=HOURLY), source=JobSource.FILE)
        jobs.add(connection, spec("a", on_event="paid"), source=JobSource.DATABASE)
        jobs.add(connection, spec("b", on_event="paid", enabled=False), source=JobSource.FILE)
        jobs.add(connection, spec("d", schedule=HOURLY, enabled=False), source=JobSource.FILE)
        jobs.add(connection, spec("e", on_event="sent"), source=JobSource.FILE)
    with database.read() as connection:
        assert names(jobs.find(connection)) == ["a", "b", "c", "d", "e"]
        assert names(job for job in jobs.find(connection) if job.source is JobSource.DATABASE) == [
            "a"
        ]
        assert names(jobs.find_scheduled(connection)) == ["c"]
        assert sorted(names(jobs.find_by_event(connection, ["paid"]))) == ["a", "b"]
        found = jobs.find_by_event(connection, ["sent", "paid", "x"])
        assert sorted(names(found)) == ["a", "b", "e"]
        assert jobs.find_by_event(connection, []) == []
        assert jobs.get_by_name(connection, "A") is None
        assert jobs.get(connection, 4711) is None


def test_a_job_that_lost_a_change_is_read_again_though_its_version_is_known(
    database: Database,
) -> None:
    lost = get(database, add_job(database, spec(schedule=parse_schedule("every 1h"))))
    lose_last_change(database, lost.id, priority=7)
    by_id, by_name = {lost.id: lost}, {lost.spec.name: lost}
    with database.read() as connection:
        looked_up = jobs.look_up(connection, lost.spec.name, known=by_name)
        assert looked_up is not None
        found = [
            looked_up.job,
            *jobs.get_many(connection, [lost.id], known=by_id).values(),
            *jobs.find(connection, known=by_id),
            *jobs.find_scheduled(connection, known=by_id),
        ]
    assert [(job.version, job.spec.priority) for job in found] == [(lost.version, 7)] * 4


def test_many_jobs_are_read_again_only_where_they_changed(database: Database) -> None:
    same, changed, removed = (get(database, add_job(database, spec(name))) for name in "abc")
    assert change(database, changed, priority=1)
    assert remove(database, removed)
    known = {job.id: job for job in (same, changed, removed)}
    with database.read() as connection:
        found = jobs.get_many(connection, [*known, 4711], known=known)
        assert jobs.get_many(connection, [], known={}) == {}
    assert found[same.id] is same
    assert found[changed.id].spec.priority == 1
    assert found[removed.id].deleted_at is not None
    assert 4711 not in found
