"""What is due next: waiting runs and the ticks of schedules, what is late first."""

from datetime import timedelta

from support.factories import add_job, add_worker, create_run, run_in_state, spec, take_lead
from support.moving_clock import MovingClock
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.model.states import RunState
from tsuzuki.services.explain import Cause
from tsuzuki.services.upcoming import Upcoming
from tsuzuki.store.sql.database import Database


def test_late_work_comes_first_and_each_job_with_its_next_tick(
    database: Database, clock: MovingClock
) -> None:
    by_hand = add_job(database, spec("by-hand"))
    add_job(database, spec("hourly", schedule=parse_schedule("every 1h")))
    add_job(database, spec("minutely", schedule=parse_schedule("every 1m")))
    late = create_run(database, by_hand, scheduled_for=clock.now() - timedelta(hours=2)).id
    later = create_run(database, by_hand, scheduled_for=clock.now() + timedelta(days=9)).id
    upcoming = Upcoming(database=database)
    found = upcoming.find(limit=10)
    assert [(item.job, item.run_id, item.is_late) for item in found] == [
        ("by-hand", late, True),
        ("minutely", None, False),
        ("hourly", None, False),
        ("by-hand", later, False),
    ]
    assert upcoming.find(limit=10) == found
    assert upcoming.find(limit=1) == found[:1]
    clock.advance(3600)
    again = upcoming.find(limit=10)
    assert [item.due_at for item in again] == [item.due_at for item in found]
    assert [item.is_late for item in again] == [True, True, True, False]


def test_a_run_that_waits_because_of_its_job_is_not_late(
    database: Database, clock: MovingClock
) -> None:
    disabled = add_job(database, spec("disabled", enabled=False))
    limited = add_job(database, spec("hello", max_concurrent=1))
    add_worker(database)
    run_in_state(database, RunState.RUNNING, take_lead(database))
    waits = create_run(database, limited, scheduled_for=clock.now() - timedelta(hours=1)).id
    paused = create_run(database, disabled, scheduled_for=clock.now() - timedelta(hours=2)).id
    upcoming = Upcoming(database=database)
    (item,) = upcoming.find(limit=10)
    assert (item.run_id, item.is_late, item.cause) == (waits, False, Cause.JOB_LIMIT)
    both = upcoming.find(limit=10, with_paused=True)
    assert [(item.run_id, item.is_late) for item in both] == [(paused, False), (waits, False)]
