"""Handles follow the work: a failed attempt is not its end while a retry follows."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import wait_until
from tsuzuki import Conflict, Handle, RunContext, RunFailed, RunState, Tsuzuki
from tsuzuki.model.states import Reason
from tsuzuki.store.runs import moves

TIMEOUT_SECONDS = 60.0
SOON = {"initial": 0.01, "jitter": 0.0}


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        yield app


def third_time(run: RunContext) -> int:
    if run.attempt < 3:
        raise OSError(f"attempt {run.attempt}")
    return run.attempt


def stumble(stone: str = "granite") -> None:
    try:
        raise KeyError(stone)
    except KeyError as problem:
        raise ValueError(f"over a {stone}") from problem


class Waiting:
    has_started = threading.Event()


def wait_for_ever(run: RunContext) -> None:
    run.progress(3, 7)
    Waiting.has_started.set()
    run.wait(600)
    run.raise_if_cancelled()


def test_the_result_is_that_of_the_attempt_that_succeeds(app: Tsuzuki) -> None:
    job = app.job(max_retries=3, backoff=SOON)(third_time)
    with app.running():
        handle = job.submit()
        assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == 3
    assert [one.attempt for one in handle.attempts()] == [1, 2, 3]
    assert handle.info().id == handle.attempts()[-1].id != handle.id
    assert (handle.state(), handle.error()) == (RunState.SUCCEEDED, None)


def test_work_that_failed_for_good_tells_how_and_the_functions_own_exception(app: Tsuzuki) -> None:
    job = app.job(max_retries=1, backoff=SOON)(stumble)
    with app.running(), pytest.raises(RunFailed) as caught:
        job.submit("slate").result(timeout_seconds=TIMEOUT_SECONDS)
    failed = caught.value
    assert (failed.state, failed.reason) == (RunState.FAILED, Reason.HANDLER_FAILED)
    assert [one.attempt for one in failed.attempts] == [1, 2]
    assert failed.run.id == failed.attempts[-1].id
    assert (failed.exception_name, failed.exception_message) == ("ValueError", "over a slate")
    lines = (failed.traceback or "").splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: over a slate"
    assert "KeyError: 'slate'" in lines
    assert not any("tsuzuki" in line for line in lines if line.startswith("  File"))
    assert failed.__notes__ == [failed.traceback]


def test_a_timeout_can_be_told_from_a_failure(app: Tsuzuki) -> None:
    job = app.job(timeout=0.05)(wait_for_ever)
    with app.running(), pytest.raises(RunFailed) as caught:
        job.submit().result(timeout_seconds=TIMEOUT_SECONDS)
    assert (caught.value.state, caught.value.exception_name) == (RunState.TIMED_OUT, None)


def test_a_retry_that_was_requested_is_followed(app: Tsuzuki) -> None:
    job = app.job(third_time)
    handle = job.submit()
    (lost,) = handle.attempts()
    with app._application.jobs._database.write() as connection:
        moves.cancel(connection, operator="test", runs=[lost.ref])
    handle.retry()
    assert not handle.state().is_final
    assert [one.state for one in handle.attempts()] == [RunState.CANCELED, RunState.PENDING]


def test_cancel_reaches_the_attempt_in_progress(app: Tsuzuki) -> None:
    job = app.job(wait_for_ever)
    Waiting.has_started.clear()
    with app.running():
        handle = job.submit()
        assert Waiting.has_started.wait(TIMEOUT_SECONDS)
        wait_until(lambda: handle.progress().processed == 3, "progress is stored")
        assert handle.progress() == (3, 7)
        handle.cancel()
        assert handle.wait(timeout_seconds=TIMEOUT_SECONDS).state is RunState.CANCELED
    with pytest.raises(Conflict):
        handle.cancel()


def test_cancel_reaches_the_retry_that_waits(app: Tsuzuki) -> None:
    job = app.job(max_retries=3, backoff={"initial": 3600})(stumble)
    with app.running():
        handle = job.submit()
        wait_until(lambda: len(handle.attempts()) == 2, "the retry is stored")
        handle.cancel()
        with pytest.raises(RunFailed) as caught:
            handle.result(timeout_seconds=TIMEOUT_SECONDS)
    assert [one.state for one in caught.value.attempts] == [RunState.FAILED, RunState.CANCELED]


def test_work_is_retried_and_read_in_another_process(app: Tsuzuki, database_url: str) -> None:
    job = app.job(stumble)
    with app.running(), Tsuzuki(database_url, environ={}) as elsewhere:
        handle = job.submit()
        handle.wait(timeout_seconds=TIMEOUT_SECONDS)
        same: Handle[object] = elsewhere.run(handle.id)
        assert same.error() == "ValueError: over a granite"
        assert same.log()[-1] == "ValueError: over a granite"
        same.retry()
        wait_until(lambda: same.state().is_final, "the retry has ended")
        assert len(same.attempts()) == 2
        assert same.explain()


def test_runs_are_listed_with_filters(app: Tsuzuki) -> None:
    app.define("other", command=["true"])
    job = app.job(stumble)
    first, second = job.submit(), job.submit("slate")
    app.submit("other")
    assert [run.id for run in app.runs(job="stumble")] == [second.id, first.id]
    assert [run.id for run in app.runs(job="stumble", before_id=second.id)] == [first.id]
    assert app.runs(states=[RunState.FAILED]) == []
    assert len(app.runs(limit=2)) == 2
