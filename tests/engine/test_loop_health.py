"""Loops that keep failing are reported: in metrics, by the process itself, and through the database."""

import pytest
from sqlalchemy import select, update

from support.engines import FREE, Engines
from support.factories import add_job
from support.moving_clock import MovingClock
from support.waiting import wait_until
from tsuzuki.engine.loop import Loop
from tsuzuki.engine.loop_health import LoopHealth
from tsuzuki.engine.process import Engine
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.loop_failure import FAILURES_MIN
from tsuzuki.store import failing_loops
from tsuzuki.store.failing_loops import SEEN_SECONDS_MAX, FailingLoop
from tsuzuki.store.schema.operation_tables import failing_loops as table
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.database import Database


def stored(database: Database) -> list[FailingLoop]:
    with database.read() as connection:
        return failing_loops.find(connection)


def gauge(engine: Engine, loop: str) -> float | None:
    return engine.metrics.registry.get_sample_value("tsuzuki_loop_failing", {"loop": loop})


def test_a_loop_that_keeps_failing_is_reported_until_a_step_succeeds(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_job(engines.database, FREE)
    engine = engines.start()
    assert engine.health.failing() == []
    assert gauge(engine, "lead") == 0.0

    def fail(*_: object, **__: object) -> None:
        raise ValueError("postgresql://me:a-secret-word@host/db")

    with monkeypatch.context() as patched:
        patched.setattr(engine.leader, "tick", fail)
        wait_until(lambda: bool(engine.health.failing()), "the loop is failing")
        (failing,) = engine.health.failing()
        assert (failing.loop, failing.code) == ("lead", "bug")
        assert failing.failures >= FAILURES_MIN
        assert "a-secret-word" not in failing.error
        assert gauge(engine, "lead") == 1.0
        assert gauge(engine, "work") == 0.0
        engine.health.step()
        ((process, found),) = stored(engines.database)
        assert (process, found.loop) == (engine.worker.identity.id, "lead")
        assert found.failures >= FAILURES_MIN
    wait_until(lambda: not engine.health.failing(), "the loop has recovered")
    engine.health.step()
    assert stored(engines.database) == []
    assert gauge(engine, "lead") == 0.0


def failing_health(database: Database, clock: MovingClock, process: str) -> LoopHealth:
    """With one loop, whose every step fails."""
    failures = iter(range(FAILURES_MIN))

    def step() -> float:
        if next(failures, None) is None:
            loop.stop()
        raise Unreachable("no room left", code="database")

    loop = Loop("work", step, clock=clock, on_error=lambda _name: None)
    loop.start()
    assert loop.join(30)
    health = LoopHealth(database=database, process=process, hide_secrets=str)
    health.loops = [loop]
    return health


def test_what_a_process_that_is_gone_has_reported_is_dropped(
    database: Database, clock: MovingClock
) -> None:
    failing_health(database, clock, "gone").step()
    assert [process for process, _ in stored(database)] == ["gone"]
    long_ago = db_now(-SEEN_SECONDS_MAX - 1)
    with database.write() as connection:
        connection.execute(update(table).values(seen_at=long_ago))
    assert stored(database) == []
    failing_health(database, clock, "here").step()
    with database.read() as connection:
        assert connection.execute(select(table.c.process)).scalars().all() == ["here"]


def test_reports_of_two_processes_stand_beside_each_other(
    database: Database, clock: MovingClock
) -> None:
    one, two = (failing_health(database, clock, name) for name in ("one", "two"))
    for health in (one, two, one):
        health.step()
    assert {process for process, _ in stored(database)} == {"one", "two"}
    one.loops = ()
    one.step()
    assert {process for process, _ in stored(database)} == {"two"}
