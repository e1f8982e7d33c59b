"""What Redis may do for the engine: keep a worker attached, spare a conflict, wake a process. Nothing else."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from support.coordination import (
    LONG_SECONDS,
    detect_outage,
    listening,
    next_heard,
    use_long_timeouts,
)
from support.daemons import eventually
from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    read_run,
    run_in_state,
    spec,
    take_lead,
)
from support.moving_clock import MovingClock
from support.redis_server import RedisServer
from support.waiting import wait_until
from tsuzuki import Tsuzuki
from tsuzuki.engine.coordination.protocol import Coordination, connect, heartbeat_ttl_seconds
from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.rescuer import Rescued, Rescuer
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

SETTINGS = EngineSettings()
TTL = SETTINGS.worker_ttl_seconds


@pytest.fixture(autouse=True)
def _long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    use_long_timeouts(monkeypatch)


@pytest.fixture
def coordination(server: RedisServer) -> Iterator[Coordination]:
    with closing(connect(server.url, SystemClock())) as coordination:
        yield coordination


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database, lease_seconds=100_000)


def rescue(database: Database, coordination: Coordination, term: Term) -> Rescued:
    rescuer = Rescuer(
        database=database,
        settings=lambda: SETTINGS,
        random=Random(1),
        coordination=coordination,
    )
    return rescuer.tick(term)


def state_of(database: Database, worker_id: str = WORKER) -> WorkerState:
    with database.read() as connection:
        worker = workers.get(connection, worker_id)
    assert worker is not None
    return worker.state


class TestRescuing:
    def test_a_worker_that_only_redis_hears_keeps_its_runs(
        self, database: Database, coordination: Coordination, term: Term, clock: MovingClock
    ) -> None:
        assigned = run_in_state(database, RunState.ASSIGNED, term)
        running = run_in_state(database, RunState.RUNNING, term)
        for _ in range(5):
            clock.advance(TTL)
            coordination.heartbeat(WORKER, ttl_seconds=LONG_SECONDS)
            assert rescue(database, coordination, term) == Rescued()
        assert state_of(database) is WorkerState.ATTACHED
        assert read_run(database, assigned.id).state is RunState.ASSIGNED
        assert read_run(database, running.id).state is RunState.RUNNING

    def test_a_worker_silent_there_too_is_detached_as_soon_as_without_it(
        self, database: Database, coordination: Coordination, term: Term, clock: MovingClock
    ) -> None:
        clock.advance(TTL)
        coordination.heartbeat(WORKER, ttl_seconds=LONG_SECONDS)
        rescue(database, coordination, term)
        coordination.heartbeat(WORKER, ttl_seconds=0.001)
        eventually(lambda: not coordination.live_workers([WORKER]), what="that heartbeat to expire")
        # It was heard at most so long before the last tick: the TTL counts from then.
        clock.advance(TTL - heartbeat_ttl_seconds(SETTINGS))
        assert rescue(database, coordination, term).detached == 1

    def test_a_detached_worker_is_not_reattached_by_redis(
        self, database: Database, coordination: Coordination, term: Term, clock: MovingClock
    ) -> None:
        clock.advance(TTL)
        assert rescue(database, coordination, term).detached == 1
        coordination.heartbeat(WORKER, ttl_seconds=LONG_SECONDS)
        assert rescue(database, coordination, term).reattached == 0
        assert state_of(database) is WorkerState.DETACHED

    @pytest.mark.parametrize("fault", ["kill", "flush"])
    def test_without_redis_the_heartbeats_of_the_database_are_enough(
        self,
        database: Database,
        coordination: Coordination,
        server: RedisServer,
        term: Term,
        clock: MovingClock,
        fault: str,
    ) -> None:
        coordination.heartbeat(WORKER, ttl_seconds=LONG_SECONDS)
        assert coordination.live_workers([WORKER]) == {WORKER}
        getattr(server, fault)()
        detect_outage(coordination)
        for _ in range(5):
            clock.advance(TTL - 0.1)
            with database.write() as connection:
                workers.heartbeat(connection, WORKER)
            assert rescue(database, coordination, term) == Rescued()
        clock.advance(TTL)
        assert rescue(database, coordination, term).detached == 1

    def test_a_deposed_leader_refreshes_no_heartbeat(
        self, database: Database, coordination: Coordination, term: Term, clock: MovingClock
    ) -> None:
        clock.advance(TTL)
        depose_and_take(database)
        coordination.heartbeat(WORKER, ttl_seconds=LONG_SECONDS)
        rescue(database, coordination, term)
        with database.read() as connection:
            assert workers.silent(connection, silent_after_seconds=TTL) == [WORKER]

    def test_an_orphan_may_be_assigned_to_any_worker_at_once(
        self, database: Database, coordination: Coordination, term: Term, clock: MovingClock
    ) -> None:
        job_id = add_job(database)
        run = create_run(database, job_id)
        assigner = Assigner(database=database, coordination=coordination)
        assert assigner.tick(term) == 1
        clock.advance(TTL)
        add_worker(database, "host-2-bbbb")
        assert rescue(database, coordination, term).orphaned == 1
        assert assigner.tick(term) == 1
        assert read_run(database, run.id).assigned_worker_id == "host-2-bbbb"


class TestAssigning:
    def test_a_run_reserved_for_another_worker_waits_for_a_round(
        self, database: Database, coordination: Coordination, term: Term
    ) -> None:
        job_id = add_job(database, spec(max_concurrent=5))
        reserved, free = create_run(database, job_id), create_run(database, job_id)
        coordination.reserve({reserved.id: "host-9-zzzz"}, ttl_seconds=2.0)
        assigner = Assigner(database=database, coordination=coordination)
        assert assigner.tick(term) == 1
        assert read_run(database, free.id).state is RunState.ASSIGNED
        assert read_run(database, reserved.id).state is RunState.PENDING
        coordination.release([reserved.id])
        assert assigner.tick(term) == 1

    def test_a_lease_is_no_permission(
        self, database: Database, coordination: Coordination, term: Term
    ) -> None:
        """A deposed leader that reserves a run assigns nothing, and leaves none behind."""
        run = create_run(database, add_job(database))
        depose_and_take(database)
        assert Assigner(database=database, coordination=coordination).tick(term) == 0
        assert read_run(database, run.id).state is RunState.PENDING
        assert coordination.reserve({run.id: "host-9-zzzz"}, ttl_seconds=2.0) == frozenset()

    def test_without_redis_everything_is_assigned(
        self, database: Database, coordination: Coordination, server: RedisServer, term: Term
    ) -> None:
        create_run(database, add_job(database))
        server.kill()
        assert Assigner(database=database, coordination=coordination).tick(term) == 1

    def test_a_worker_that_was_assigned_a_run_is_woken(
        self, database: Database, coordination: Coordination, term: Term
    ) -> None:
        create_run(database, add_job(database))
        with listening(coordination) as listener:
            Assigner(database=database, coordination=coordination).tick(term)
            assert set(next_heard(listener)) == {WORKER}


def attempt_of(run: RunContext) -> int:
    return run.attempt


def is_helped(*applications: Tsuzuki) -> bool:
    engines = [application._application.local_engine._engine for application in applications]
    return all(engine and engine.coordination.listener() is not None for engine in engines)


def test_runs_are_not_affected_when_redis_comes_and_goes(
    database_url: str, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader and a worker apart, while it is emptied, killed and paused: each run runs once."""
    monkeypatch.undo()  # with the real bounds
    environ = {"TSUZUKI_REDIS_URL": server.url}

    def use() -> None:
        handles = [leading.submit("count") for _ in range(20)]
        assert [handle.result(timeout_seconds=60) for handle in handles] == [1] * 20

    with (
        Tsuzuki(database_url, environ=environ, cwd=tmp_path) as leading,
        Tsuzuki(database_url, environ=environ, cwd=tmp_path) as working,
    ):
        working.job("count", concurrency_policy="allow")(attempt_of)
        with leading.running(work=False), working.running(lead=False):
            use()
            server.flush()
            use()
            server.kill()
            use()
            assert not is_helped(leading)
            server.start()
            wait_until(lambda: is_helped(leading, working), "it is back")
            use()
            server.pause()
            use()
            wait_until(lambda: not is_helped(leading), "the pause was noticed")
            server.resume()
            wait_until(lambda: is_helped(leading, working), "it goes on")
            use()
