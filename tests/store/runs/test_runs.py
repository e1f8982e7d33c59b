"""Creating runs: what comes back, and what is created only once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from support.factories import (
    add_job,
    create_run,
    depose_and_take,
    new_run,
    read_run,
    spec,
    take_lead,
)
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.run import NewRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import ContinuationState, RunState, Trigger
from tsuzuki.store import jobs
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Database


def create(database: Database, wanted: list[NewRun]) -> list[int | None]:
    with database.write() as connection:
        return runs.create(connection, wanted)


def keys_of(database: Database, ids: list[int | None]) -> list[str | None]:
    return [None if i is None else read_run(database, i).idempotency_key for i in ids]


def test_a_run_is_created_as_requested(database: Database, clock: MovingClock) -> None:
    job_id = add_job(database)
    later = clock.now() + timedelta(hours=1)
    wanted = NewRun(
        job_definition_id=job_id,
        trigger=Trigger.RETRY,
        scheduled_for=later,
        arguments={"b": [1, {"c": None}], "a": "続き"},
        priority=-7,
        idempotency_key="retry:1",
        concurrency_key="tenant-1",
        event_id=12,
        attempt=3,
        retries_used=2,
        retry_of=11,
        origin_id=10,
        work_key="order-7",
        defaulted_arguments=["a"],
        covers_ticks=4,
        covers_until=later + timedelta(hours=4),
    )
    (run_id,) = create(database, [wanted])
    assert run_id is not None
    found = read_run(database, run_id)
    for name in runs.NEW_COLUMNS.keys() - {"defaulted_arguments"}:
        assert getattr(found, name) == getattr(wanted, name), name
    with database.read() as connection:
        assert runs.defaulted_arguments(connection, run_id) == {"a"}
    assert (found.state, found.version, found.job_name) == (RunState.PENDING, 1, "hello")
    assert found.created_at == clock.now()
    assert found.continuation_state is ContinuationState.NONE
    nothing_yet = (
        "assigned_worker_id assigned_at leader_epoch started_at finished_at reason error result "
        "progress_total progress_at log_ref continuation_check_deadline_at"
    )
    assert all(getattr(found, name) is None for name in nothing_yet.split())
    assert (found.orphan_count, found.progress_processed) == (0, 0)


def test_every_field_of_a_new_run_is_stored() -> None:
    assert tuple(runs.NEW_COLUMNS) == NewRun._fields


def test_a_run_of_a_job_that_is_not_as_it_was_read_is_not_stored(database: Database) -> None:
    job_id = add_job(database)
    with database.read() as connection:
        job = jobs.get(connection, job_id)
    assert job is not None
    others = [
        replace(job, id=job_id + 1),
        replace(job, spec=spec("other")),
        replace(job, version=2),
        replace(job, updated_at=job.updated_at - timedelta(microseconds=1)),
    ]
    with database.write() as connection:
        for other in others:
            assert runs.create(connection, [new_run(database, job_id)], of=other) == [None]
        (run_id,) = runs.create(connection, [new_run(database, job_id)], of=job)
    assert run_id is not None


def test_ids_come_back_in_the_order_asked(database: Database) -> None:
    job_id = add_job(database)
    wanted = [
        new_run(database, job_id, idempotency_key=f"key-{n}" if n % 3 else None, priority=n)
        for n in (5, 3, 9, 1, 8, 2, 7, 0, 6, 4)
    ]
    created = create(database, wanted)
    priorities = [read_run(database, i).priority for i in created if i is not None]
    assert priorities == [run.priority for run in wanted]


def test_a_key_that_was_used_answers_with_nothing(database: Database) -> None:
    job_id = add_job(database)
    (first,) = create(database, [new_run(database, job_id, idempotency_key="a")])
    wanted = [new_run(database, job_id, idempotency_key=key) for key in ("b", "a", "c")]
    created = create(database, wanted)
    assert keys_of(database, created) == ["b", None, "c"]
    with database.read() as connection:
        again = runs.get_by_key(connection, "a")
    assert again is not None
    assert again.id == first


def test_runs_that_are_stored_without_a_key_of_their_work_get_one_each(database: Database) -> None:
    job_id = add_job(database)
    created = [
        *create(database, [new_run(database, job_id, priority=n) for n in range(3)]),
        *create(database, [new_run(database, job_id, idempotency_key=f"{n}") for n in range(3)]),
        *create(database, [new_run(database, job_id)]),
    ]
    keys = {read_run(database, i).work_key for i in created if i is not None}
    assert len(keys) == 7
    assert all(key is not None and len(key) >= 20 for key in keys)


def test_a_key_is_one_key_for_all_jobs_and_for_finished_runs(database: Database) -> None:
    job_id = add_job(database)
    other_id = add_job(database, spec("other"))
    run = create_run(database, job_id, idempotency_key="a")
    with database.write() as connection:
        assert moves.cancel(connection, operator="me", runs=[run])
    assert create(database, [new_run(database, other_id, idempotency_key="a")]) == [None]


def test_the_same_key_twice_in_one_batch_is_one_run(database: Database) -> None:
    job_id = add_job(database)
    wanted = [new_run(database, job_id, idempotency_key=key) for key in ("a", "b", "a", "a")]
    created = create(database, wanted)
    assert keys_of(database, created) == ["a", "b", None, None]


def test_a_tick_of_a_job_is_one_run(database: Database, clock: MovingClock) -> None:
    job_id = add_job(database)
    other_id = add_job(database, spec("other"))
    tick = clock.now()
    timed = new_run(database, job_id, trigger=Trigger.TIME, scheduled_for=tick)
    (first,) = create(database, [timed])
    next_tick = new_run(
        database, job_id, trigger=Trigger.TIME, scheduled_for=tick + timedelta(microseconds=1)
    )
    others = new_run(database, other_id, trigger=Trigger.TIME, scheduled_for=tick)
    created = create(database, [timed, next_tick, timed, others, next_tick])
    assert [i is not None for i in created] == [False, True, False, True, False]
    assert first is not None


def test_a_tick_stays_taken_when_its_run_is_finished(database: Database) -> None:
    job_id = add_job(database)
    timed = new_run(database, job_id, trigger=Trigger.TIME)
    run = create_run(database, job_id, trigger=Trigger.TIME)
    with database.write() as connection:
        assert moves.cancel(connection, operator="me", runs=[run])
    assert create(database, [timed]) == [None]


@pytest.mark.parametrize("trigger", sorted(set(Trigger) - {Trigger.TIME}))
def test_runs_that_no_tick_made_may_share_a_moment(database: Database, trigger: Trigger) -> None:
    job_id = add_job(database)
    create_run(database, job_id, trigger=Trigger.TIME)
    wanted = [new_run(database, job_id, trigger=trigger)] * 3
    created = create(database, wanted)
    assert None not in created
    assert len(set(created)) == 3


def test_in_a_mixed_batch_everyone_gets_its_own_answer(database: Database) -> None:
    job_id = add_job(database)
    create_run(database, job_id, idempotency_key="used")
    create_run(database, job_id, trigger=Trigger.TIME)
    wanted = [
        new_run(database, job_id, priority=1),
        new_run(database, job_id, priority=2, idempotency_key="used"),
        new_run(database, job_id, priority=3, trigger=Trigger.TIME),
        new_run(database, job_id, priority=4, idempotency_key=""),
        new_run(database, job_id, priority=5),
        new_run(database, job_id, priority=6, idempotency_key=""),
        new_run(database, job_id, priority=7, trigger=Trigger.TIME, idempotency_key="new"),
        new_run(database, job_id, priority=8, trigger=Trigger.EVENT),
    ]
    created = create(database, wanted)
    found = [None if i is None else read_run(database, i).priority for i in created]
    assert found == [1, None, None, 4, 5, None, None, 8]


@pytest.mark.parametrize("by", ["key", "tick"])
def test_of_ten_who_ask_at_once_one_gets_the_run(database: Database, by: str) -> None:
    job_id = add_job(database)
    changes = {"idempotency_key": "a"} if by == "key" else {"trigger": Trigger.TIME}
    wanted = new_run(database, job_id, **changes)
    created = at_once(10, lambda _: create(database, [wanted])[0])
    assert sum(i is not None for i in created) == 1
    with database.read() as connection:
        assert len(runs.find(connection, RunFilter())) == 1


def test_a_run_of_a_job_that_never_was_is_refused(database: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)foreign key|belongs to a job that exists"):
        create(database, [new_run(database, 4711)])


def test_nothing_is_created_once_the_term_is_over(database: Database) -> None:
    job_id = add_job(database)
    old = take_lead(database)
    new = depose_and_take(database)
    wanted = [
        new_run(database, job_id),
        new_run(database, job_id, idempotency_key="a"),
        new_run(database, job_id, trigger=Trigger.TIME),
    ]
    with database.write() as connection:
        assert runs.create(connection, wanted, term=old) == [None] * 3
        assert None not in runs.create(connection, wanted, term=new)


def test_a_batch_with_a_bad_row_is_not_created_at_all(database: Database) -> None:
    job_id = add_job(database)
    wanted = [new_run(database, job_id), new_run(database, job_id, attempt=0)]
    with pytest.raises(Exception, match="tsuzuki_ck_job_runs"):
        create(database, wanted)
    with database.read() as connection:
        assert runs.find(connection, RunFilter()) == []
