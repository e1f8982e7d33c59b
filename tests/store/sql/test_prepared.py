"""A prepared statement sends and reads what SQLAlchemy would; an autocommit connection that fails is not used again."""

import threading
from contextlib import ExitStack

import pytest
from sqlalchemy import Integer, bindparam, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from support import raw_statements
from support.dialects import only_on_postgresql, only_on_sqlite
from support.factories import WORKER, add_job, add_worker, create_run, new_run, read_run, take_lead
from support.threads import at_once, in_background
from tsuzuki.model.errors import Unreachable, UsageError
from tsuzuki.model.run import RunRef
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Actor, RunState
from tsuzuki.store import leadership, workers
from tsuzuki.store.runs import capacity, moves, runs
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.prepared import execute

QUEUE = (
    select(job_runs.c.id, job_runs.c.scheduled_for, job_runs.c.arguments, job_runs.c.event_id)
    .order_by(job_runs.c.id)
    .limit(bindparam("limit", type_=Integer()))
)
KILL_THE_OTHERS = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def beat(database: Database) -> object:
    with database.statement() as connection:
        return workers.heartbeat(connection, WORKER)


def several_at_once(database: Database, count: int) -> None:
    """So many connections are needed at the same time."""
    gate = threading.Barrier(count)

    def use(_: int) -> None:
        with database.statement() as connection:
            gate.wait(10)
            workers.heartbeat(connection, WORKER)

    at_once(count, use)


def test_what_is_read_is_what_sqlalchemy_reads(database: Database) -> None:
    add_worker(database, tags=frozenset({"a", "b"}))
    create_run(database, add_job(database))
    with database.read() as connection, database.statement() as autocommit:
        loaded = capacity.load(autocommit, heard_within_seconds=4)
        assert loaded == capacity.load(connection, heard_within_seconds=4)
        found = capacity.load_with_first_due(autocommit, heard_within_seconds=4)
        assert found == capacity.load_with_first_due(connection, heard_within_seconds=4)
        rows = execute(autocommit, QUEUE, {"limit": 5}).all()
        assert rows == execute(connection, QUEUE, {"limit": 5}).all()
        assert rows == [tuple(row) for row in connection.execute(QUEUE, {"limit": 5})]
    assert found.due is not None
    assert found.workers[0].tags == {"a", "b"}


def test_a_single_read_shares_the_pool_and_a_connection_that_failed_is_not_used_again(
    database: Database,
) -> None:
    run_id = create_run(database, add_job(database)).id
    with database.single_read() as connection:
        assert execute(connection, QUEUE, {"limit": 1}).one()[0] == run_id
        first = connection
    with database.single_read() as connection:
        assert connection is first
    with pytest.raises(UsageError), database.single_read():
        raise UsageError("in the middle")
    with database.single_read() as connection:
        assert connection is not first
        assert execute(connection, QUEUE, {"limit": 1}).one()[0] == run_id


def test_a_run_can_be_created_and_started_on_it(database: Database) -> None:
    term = take_lead(database)
    add_worker(database)
    wanted = new_run(database, add_job(database), arguments={"ä": [1, None]}, priority=3)
    with database.statement() as connection:
        (run_id,) = runs.create(connection, [wanted])
    assert run_id is not None
    ref = RunRef(run_id, 1)
    with database.statement() as connection:
        started = moves.assign_and_start(connection, term=term, worker_id=WORKER, runs=[ref])[
            run_id
        ]
    run = read_run(database, run_id)
    assert (run.state, run.version, run.priority) == (RunState.RUNNING, 3, 3)
    assert started.started == (run_id, 3, term.epoch)
    assert started.arguments == run.arguments == {"ä": [1, None]}
    assert started.scheduled_for == run.scheduled_for


def test_it_counts_what_it_changed(database: Database) -> None:
    term = take_lead(database)
    with database.statement() as connection:
        assert leadership.renew(connection, term=term, lease_seconds=5)
    with database.statement() as connection:
        over = leadership.Term(holder=term.holder, epoch=term.epoch + 1)
        assert not leadership.renew(connection, term=over, lease_seconds=5)


def test_what_the_database_refuses_raises_the_usual_error(database: Database) -> None:
    run = create_run(database, add_job(database))

    def move_back() -> None:
        with database.statement() as connection:
            execute(connection, raw_statements.move(run.id, RunState.SUCCEEDED, Actor.WORKER))

    with pytest.raises(IntegrityError, match="not in the table of moves"):
        move_back()
    add_worker(database)
    assert beat(database) is not None


def test_a_key_that_cannot_be_kept_is_a_mistake_and_not_an_outage(database: Database) -> None:
    wanted = new_run(database, add_job(database), idempotency_key="a\x00b")

    def submit() -> None:
        with database.statement() as connection:
            runs.create(connection, [wanted])

    with pytest.raises(UsageError, match="cannot be a key"):
        submit()


def test_a_list_of_any_length_is_refused(database: Database) -> None:
    statement = select(job_runs.c.id).where(job_runs.c.id.in_(bindparam("ids", expanding=True)))
    with (
        pytest.raises(RuntimeError, match="cannot be prepared"),
        database.statement() as connection,
    ):
        execute(connection, statement, {"ids": [1, 2]})


def test_no_write_is_opened_inside_of_it(database: Database) -> None:
    with pytest.raises(RuntimeError, match="inside another"), database.statement():
        add_job(database)


@only_on_sqlite
def test_what_fails_half_way_is_rolled_back_and_holds_no_lock(database: Database) -> None:
    job_id = add_job(database)

    def fail() -> None:
        with database.statement() as connection:
            runs.create(connection, [new_run(database, job_id)])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.read() as connection:
        assert runs.find(connection, RunFilter()) == []
    assert in_background(lambda: create_run(database, job_id)).result(10).id


@only_on_postgresql
def test_no_transaction_is_left_open(database: Database) -> None:
    add_worker(database)
    beat(database)
    with database.read() as connection:
        states = connection.execute(
            text("SELECT state FROM pg_stat_activity WHERE datname = current_database()")
        ).scalars()
        assert "idle in transaction" not in set(states)


@only_on_postgresql
def test_when_the_server_ends_one_all_are_made_anew(database: Database) -> None:
    add_worker(database)
    several_at_once(database, 3)
    with ExitStack() as stack:
        looks = [stack.enter_context(database.read()) for _ in range(4)]
        looks[-1].execute(KILL_THE_OTHERS)
    with pytest.raises(Unreachable):
        beat(database)
    for _ in range(5):
        assert beat(database) is not None
    add_worker(database, "another")


@only_on_sqlite
def test_an_error_while_an_answer_is_read_is_raised_as_sqlalchemy_would(
    database: Database,
) -> None:
    def fail_at_the_second(number: int) -> int:
        if number == 2:
            raise ValueError
        return number

    def ask() -> None:
        with database.statement() as connection:
            connection.raw.create_function("fail_at_the_second", 1, fail_at_the_second)
            ask_for = "SELECT fail_at_the_second(value) FROM json_each('[1, 2, 3]')"
            connection.send(ask_for, has_rows=True)

    with pytest.raises(OperationalError):
        ask()
