"""Planning a job that is disabled, removed, rescheduled or changed meanwhile."""

from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import update

from support.factories import (
    add_job,
    lose_last_change,
    spec,
)
from support.moving_clock import MovingClock
from support.planning import (
    ALLOW,
    HOUR,
    HOURLY,
    MINUTELY,
    a_planner,
    all_runs,
    at,
    change_job,
    created,
    job_of,
    scheduled,
)
from tsuzuki.engine.leader.planner import PlanningResult
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.schema.tables import job_definitions
from tsuzuki.store.sql.database import Database, open_database

pytestmark = pytest.mark.usefixtures("history_is_valid")


def test_a_disabled_job_is_not_planned_and_its_missed_ticks_are_not_made_up_for(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    change_job(database, job_id, spec(schedule=HOURLY, enabled=False))
    clock.advance(2.5 * HOUR)
    assert planner.tick(term) == PlanningResult(now=database.clock.now())
    change_job(database, job_id, spec(schedule=HOURLY))
    assert planner.tick(term).next_at == at(3)
    clock.advance(0.5 * HOUR)
    planner.tick(term)
    assert created(database) == [
        (at(1), RunState.CANCELED, Reason.JOB_DISABLED),
        (at(3), RunState.PENDING, None),
    ]


def test_a_removed_job_is_not_planned(database: Database, clock: MovingClock, term: Term) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    planner.tick(term)
    job = job_of(database, job_id)
    with database.write() as connection:
        jobs.remove(connection, job=job)
    clock.advance(HOUR)
    assert planner.tick(term) == PlanningResult(now=database.clock.now())


def test_a_rescheduled_job_is_planned_by_its_new_schedule_from_then_on(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    assert planner.tick(term).next_at == at(1)
    clock.advance(1.1 * HOUR)
    change_job(database, job_id, spec(schedule=MINUTELY, concurrency_policy=ALLOW))
    assert planner.tick(term).created == 0
    clock.advance(60)
    planner.tick(term)
    assert created(database) == [
        (at(1), RunState.CANCELED, Reason.SCHEDULE_CHANGED),
        (at(67 / 60), RunState.PENDING, None),
    ]


def test_a_job_that_lost_a_change_of_its_schedule_is_planned_as_it_is_now(
    database: Database, term: Term
) -> None:
    job_id = scheduled(database)
    planner = a_planner(database)
    assert planner.tick(term).next_at == at(1)
    lose_last_change(database, job_id, schedule=MINUTELY.as_mapping())
    assert planner.tick(term).next_at == at(1 / 60)


def test_a_job_that_changes_while_it_is_planned_is_planned_as_it_is_then(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = scheduled(database, arguments={"old": True})
    planner = a_planner(database)
    clock.advance(HOUR)
    plan = planner._plan

    def plan_late(*asked: Any) -> Any:
        change_job(database, job_id, spec(schedule=HOURLY, arguments={"new": True}))
        planner._plan = plan  # type: ignore[method-assign]
        return plan(*asked)

    planner._plan = plan_late  # type: ignore[method-assign]
    assert planner.tick(term).created == 0
    assert planner.tick(term).created == 1
    (run,) = all_runs(database)
    assert run.arguments == {"new": True}


def test_a_new_job_owes_nothing_for_the_time_before_it(
    database: Database, clock: MovingClock, term: Term
) -> None:
    clock.advance(5.5 * HOUR)
    scheduled(database)
    assert a_planner(database).tick(term).next_at == at(6)
    assert all_runs(database) == []


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_a_job_that_a_handler_changes_in_its_transaction_holds_up_no_other(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id, other_id = scheduled(database), add_job(database, spec("other", schedule=HOURLY))
    planner = a_planner(database)
    clock.advance(HOUR)
    with database.engine.connect() as handler:
        statement = update(job_definitions).where(job_definitions.c.id == job_id)
        handler.execute(statement.values(description="changed"))
        # A planner that waits for the row would wait for ever: fail instead.
        with_timeout = {"options": "-c lock_timeout=2s"}
        url = database.engine.url.update_query_dict(with_timeout).render_as_string(False)
        with closing(open_database(url, clock=clock)) as impatient:
            planned = a_planner(impatient).tick(term)
        assert (planned.created, planned.is_complete) == (1, False)
        assert [run.job_definition_id for run in all_runs(database)] == [other_id]
    assert planner.tick(term).created == 1
    assert {run.job_definition_id for run in all_runs(database)} == {job_id, other_id}
