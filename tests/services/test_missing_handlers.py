"""Jobs that no live worker can execute: those with due runs, each with what is missing."""

from datetime import timedelta
from typing import Any

import pytest

from support.factories import WORKER, add_job, add_worker, create_run, spec
from support.moving_clock import MovingClock
from tsuzuki.model.abilities import Abilities
from tsuzuki.services.workers import Workers
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Database

ABLE = Abilities(kinds=frozenset({"command", "python"}), packages=frozenset({"shop"}))


@pytest.fixture
def service(database: Database) -> Workers:
    return Workers(database=database, actor="ada")


def told(service: Workers) -> list[str]:
    return [missing.job for missing in service.status().missing_handlers]


def add_waiting(database: Database, name: str, function: str, **changes: Any) -> int:
    options = {"function": function}
    job_id = add_job(database, spec(name, handler="python", options=options, **changes))
    create_run(database, job_id)
    return job_id


def test_jobs_whose_runs_wait_for_a_handler_are_told(database: Database, service: Workers) -> None:
    add_worker(database, abilities=ABLE)
    add_waiting(database, "there", "shop:work")
    add_waiting(database, "elsewhere", "webapp:work")
    add_waiting(database, "another", "webapp:work")
    create_run(database, add_job(database, spec("plain", handler="command")))
    assert told(service) == ["another", "elsewhere"]
    add_worker(
        database,
        "of the webapp",
        abilities=Abilities(kinds=ABLE.kinds, packages=frozenset({"webapp"})),
    )
    assert told(service) == []


def test_a_job_is_not_told_before_a_run_of_it_is_due(
    database: Database, service: Workers, clock: MovingClock
) -> None:
    add_worker(database, abilities=ABLE)
    options = {"function": "webapp:work"}
    job_id = add_job(database, spec("later", handler="python", options=options))
    create_run(database, job_id, scheduled_for=clock.now() + timedelta(seconds=5))
    assert told(service) == []
    clock.advance(5)
    assert told(service) == ["later"]


def test_what_waits_for_something_else_is_not_told(database: Database, service: Workers) -> None:
    add_waiting(database, "one", "webapp:work")
    assert told(service) == []  # no worker at all
    add_worker(database, WORKER)  # one that registered nothing may have every run
    assert told(service) == []


def test_disabled_and_tagged_jobs_are_not_told(database: Database, service: Workers) -> None:
    add_worker(database, abilities=ABLE)
    add_waiting(database, "off", "webapp:work", enabled=False)
    add_waiting(database, "tagged", "webapp:work", tags=frozenset({"gpu"}))
    removed = add_waiting(database, "removed", "webapp:work")
    with database.write() as connection:
        job = jobs.get(connection, removed)
        assert job is not None
        jobs.remove(connection, job=job)
    assert told(service) == []
