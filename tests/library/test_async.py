"""The async forms of the library: no event loop is blocked, and there is a bounded number of threads."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki import Conflict, RunFailed, RunState, Tsuzuki, WaitTimedOut
from tsuzuki.library.pool import THREADS_MAX

TIMEOUT_SECONDS = 60.0


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        yield app


def double(number: int) -> int:
    return 2 * number


def stumble() -> None:
    raise ValueError("over a stone")


def test_many_results_are_awaited_with_few_threads(app: Tsuzuki) -> None:
    job = app.job(max_concurrent=8)(double)

    async def main() -> list[int]:
        handles = await asyncio.gather(*(job.submit_async(n) for n in range(30)))
        handles += await job.submit_many_async([job.call(30), job.call(31)])
        results = await asyncio.gather(
            *(one.result_async(timeout_seconds=TIMEOUT_SECONDS) for one in handles)
        )
        names = [one.name for one in threading.enumerate() if one.name.startswith("tsuzuki-async_")]
        assert len(names) <= THREADS_MAX
        return results

    with app.running():
        assert asyncio.run(main()) == [2 * n for n in range(32)]


def test_a_failure_is_raised_where_it_is_awaited(app: Tsuzuki) -> None:
    job = app.job(stumble)

    async def main() -> None:
        handle = await job.submit_async()
        with pytest.raises(RunFailed) as failed:
            await handle.result_async(timeout_seconds=TIMEOUT_SECONDS)
        assert failed.value.exception_message == "over a stone"
        assert failed.value.traceback

    with app.running():
        asyncio.run(main())


def test_waiting_has_an_end_and_work_can_be_canceled(app: Tsuzuki) -> None:
    job = app.job(double)

    async def main() -> None:
        handle = await job.submit_async(1)
        with pytest.raises(WaitTimedOut):
            await handle.result_async(timeout_seconds=0.02)
        await handle.cancel_async()
        assert (await handle.wait_async()).state is RunState.CANCELED
        with pytest.raises(Conflict):
            await handle.cancel_async()

    asyncio.run(main())
