"""Jobs whose function is gone from the code: disabled, unless another worker may still have it."""

from typing import Any

import pytest

from support.factories import add_worker, spec
from support.moving_clock import MovingClock
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.job import JobSource
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.services.lost_functions import disable_lost
from tsuzuki.store import audit, jobs
from tsuzuki.store.sql.database import Database

HOURLY = parse_schedule("every 1h")
GONE: dict[str, Any] = {"handler": "python", "options": {"function": "work:gone"}}


def disabled(database: Database) -> list[str]:
    disable_lost(database, lambda job: job.needs.function == "work:gone", actor="ada")
    with database.read() as connection:
        return [job.spec.name for job in jobs.find(connection) if not job.spec.enabled]


def test_a_job_that_would_start_by_itself_is_disabled(database: Database) -> None:
    with database.write() as connection:
        for name, keys in {
            "by-time": {**GONE, "schedule": HOURLY},
            "by-event": {**GONE, "on_event": "pushed"},
            "asked-for": GONE,
            "there": {"handler": "python", "options": {"function": "work:there"}},
        }.items():
            jobs.add(connection, spec(name, **keys), source=JobSource.DATABASE)
        in_file = spec("in-file", **GONE, schedule=HOURLY)
        jobs.add(connection, in_file, source=JobSource.FILE)
    assert disabled(database) == ["by-event", "by-time"]
    with database.read() as connection:
        entries = audit.find(connection, limit=10)
    assert {(entry.actor, entry.object_id) for entry in entries} == {
        ("ada", "by-event"),
        ("ada", "by-time"),
    }


@pytest.mark.parametrize("packages", [frozenset({"work"}), frozenset()])
def test_a_live_worker_with_the_package_keeps_the_job_enabled(
    database: Database, clock: MovingClock, packages: frozenset[str]
) -> None:
    abilities = Abilities(kinds=frozenset({"python"}), packages=packages)
    with database.write() as connection:
        jobs.add(connection, spec("a", **GONE, schedule=HOURLY), source=JobSource.DATABASE)
    add_worker(database, abilities=abilities)
    assert disabled(database) == ([] if packages else ["a"])
    clock.advance(3600)
    assert disabled(database) == ["a"]
