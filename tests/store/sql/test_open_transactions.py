"""Transactions of coroutines that share an event loop, and of code that was started inside a transaction."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context

import pytest

from support.dialects import only_on_postgresql, only_on_sqlite
from support.factories import add_job, spec
from support.threads import in_background
from tsuzuki.model.errors import UsageError
from tsuzuki.store import jobs
from tsuzuki.store.sql.connection_pool import ConnectionUse, pool_of
from tsuzuki.store.sql.database import Connection, Database

TIMEOUT_SECONDS = 60.0


def add(connection: Connection, name: str) -> None:
    jobs.add(connection, spec(name), source=jobs.JobSource.FILE)


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [job.spec.name for job in jobs.find(connection)]


async def write_and_await(
    database: Database, name: str, *, awaits: Callable[[], Awaitable[object]]
) -> None:
    """A transaction with an `await` in the middle, as in an endpoint of a web application."""
    with database.used_for(ConnectionUse.UNBOUNDED), database.write() as connection:
        add(connection, name)
        await awaits()
        add(connection, f"{name}-2")


def run(main: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main, TIMEOUT_SECONDS)

    asyncio.run(bounded())


# --- coroutines on one loop -----------------------------------------------------------------------


@only_on_postgresql
def test_coroutines_on_one_loop_have_transactions_open_at_the_same_time(
    database: Database,
) -> None:
    async def main() -> None:
        first, second = asyncio.Event(), asyncio.Event()

        async def meet(mine: asyncio.Event, other: asyncio.Event) -> None:
            mine.set()
            await other.wait()

        await asyncio.gather(
            write_and_await(database, "a", awaits=lambda: meet(first, second)),
            write_and_await(database, "b", awaits=lambda: meet(second, first)),
        )

    run(main())
    assert sorted(names(database)) == ["a", "a-2", "b", "b-2"]


@only_on_sqlite
@pytest.mark.parametrize("way", ["write", "statement"])
def test_a_coroutine_that_would_wait_for_another_one_on_its_loop_is_told_so_at_once(
    database: Database, way: str
) -> None:
    async def main() -> None:
        inside, tried = asyncio.Event(), asyncio.Event()

        async def meet() -> None:
            inside.set()
            await tried.wait()

        holding = asyncio.create_task(write_and_await(database, "a", awaits=meet))
        await inside.wait()
        with pytest.raises(UsageError) as caught, getattr(database, way)():
            pass
        assert caught.value.specific_code == "transaction_deadlock"
        assert "await" in str(caught.value.hint)
        tried.set()
        await holding
        add_job(database, spec("b"))

    run(main())
    assert sorted(names(database)) == ["a", "a-2", "b"]


def test_coroutines_on_loops_of_their_own_take_turns(database: Database) -> None:
    inside, wanted = threading.Event(), threading.Event()

    def hold() -> None:
        async def meet() -> None:
            inside.set()
            assert await asyncio.to_thread(wanted.wait, TIMEOUT_SECONDS)

        run(write_and_await(database, "a", awaits=meet))

    def follow() -> None:
        assert inside.wait(TIMEOUT_SECONDS)
        wanted.set()
        run(write_and_await(database, "b", awaits=lambda: asyncio.sleep(0)))

    both = [in_background(hold), in_background(follow)]
    for one in both:
        one.result(TIMEOUT_SECONDS)
    assert sorted(names(database)) == ["a", "a-2", "b", "b-2"]


def test_a_transaction_inside_another_one_of_the_same_task_is_refused(database: Database) -> None:
    async def main() -> None:
        with database.write() as connection:
            add(connection, "a")
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="inside another"):
                add_job(database, spec("b"))

    run(main())
    assert names(database) == ["a"]


def test_what_connections_are_for_is_kept_apart_for_each_coroutine(database: Database) -> None:
    """Both blocks overlap, and the one that began first ends first."""
    pool = pool_of(database.engine)
    seen = {}

    async def main() -> None:
        first, second, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def one() -> None:
            with pool.used_for(ConnectionUse.UNBOUNDED):
                first.set()
                await second.wait()
                seen["one"] = pool.use
            ended.set()

        async def two() -> None:
            await first.wait()
            seen["two before"] = pool.use
            with pool.used_for(ConnectionUse.VITAL):
                second.set()
                await ended.wait()
                seen["two"] = pool.use
            seen["two after"] = pool.use

        await asyncio.gather(one(), two())
        seen["after"] = pool.use

    run(main())
    assert seen == {
        "two before": ConnectionUse.SHORT,
        "one": ConnectionUse.UNBOUNDED,
        "two": ConnectionUse.VITAL,
        "two after": ConnectionUse.SHORT,
        "after": ConnectionUse.SHORT,
    }


# --- code started inside a transaction ------------------------------------------------------------


def test_a_task_that_outlives_the_transaction_it_was_started_in_may_write(
    database: Database,
) -> None:
    async def main() -> None:
        is_over = asyncio.Event()
        uses = []

        async def write_later() -> None:
            await is_over.wait()
            uses.append(pool_of(database.engine).use)
            with database.write() as connection:
                add(connection, "b")

        with database.used_for(ConnectionUse.UNBOUNDED), database.write() as connection:
            add(connection, "a")
            later = asyncio.create_task(write_later())
            await asyncio.sleep(0)
        is_over.set()
        await later
        assert uses == [ConnectionUse.SHORT]

    run(main())
    assert sorted(names(database)) == ["a", "b"]


@only_on_sqlite
def test_a_thread_that_a_transaction_awaits_is_refused_one_on_sqlite(database: Database) -> None:
    async def main() -> None:
        with database.write() as connection:
            add(connection, "a")
            with pytest.raises(UsageError) as caught:
                await asyncio.to_thread(add_job, database, spec("b"))
            assert caught.value.specific_code == "transaction_deadlock"

    run(main())
    assert names(database) == ["a"]


@only_on_postgresql
def test_a_thread_that_a_transaction_awaits_has_one_of_its_own_on_postgresql(
    database: Database,
) -> None:
    async def main() -> None:
        with database.write() as connection:
            add(connection, "a")
            await asyncio.to_thread(add_job, database, spec("b"))

    run(main())
    assert sorted(names(database)) == ["a", "b"]


def test_a_loop_that_is_run_inside_a_transaction_is_inside_it(database: Database) -> None:
    async def main() -> None:
        add_job(database, spec("b"))

    with database.write() as connection:
        add(connection, "a")
        with pytest.raises(RuntimeError, match="inside another"):
            asyncio.run(main())
    assert names(database) == ["a"]


def test_a_block_may_end_in_another_thread_and_context_than_it_began_in(
    database: Database,
) -> None:
    """As web frameworks do with a generator that a request depends on."""
    block = database.write()
    connection = in_background(lambda: copy_context().run(block.__enter__)).result(TIMEOUT_SECONDS)
    add(connection, "a")
    ended = in_background(lambda: copy_context().run(block.__exit__, None, None, None))
    ended.result(TIMEOUT_SECONDS)
    add_job(database, spec("b"))
    assert sorted(names(database)) == ["a", "b"]


def test_a_transaction_that_failed_is_not_open_any_more(database: Database) -> None:
    async def main() -> None:
        with suppress(KeyError), database.write():
            await asyncio.sleep(0)
            raise KeyError
        assert not database.is_writing
        add_job(database, spec("a"))

    run(main())
    assert names(database) == ["a"]


def test_a_coroutine_knows_that_waiting_would_hold_up_a_transaction_of_its_loop(
    database: Database,
) -> None:
    """Else the log of a run, beside its own transaction, would wait for space that the transaction keeps."""
    seen = []

    async def main() -> None:
        inside, looked = asyncio.Event(), asyncio.Event()

        async def meet() -> None:
            inside.set()
            await looked.wait()

        holding = asyncio.create_task(write_and_await(database, "a", awaits=meet))
        await inside.wait()
        seen.append(database.is_writing)
        seen.append(in_background(lambda: database.is_writing).result(TIMEOUT_SECONDS))
        looked.set()
        await holding
        seen.append(database.is_writing)

    run(main())
    assert seen == [True, False, False]
