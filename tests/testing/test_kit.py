"""The test kit for one's own jobs: inline, on a temporary database, and as a pytest plug-in."""

import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tsuzuki import RunContext, RunState, RunStopped, Tsuzuki, current_run, testing
from tsuzuki.model.errors import UsageError

app = Tsuzuki("sqlite:////nowhere/never-opened.db")


@app.job(max_retries=1, backoff={"initial": 60, "jitter": 0})
def second_time(run: RunContext, day: datetime) -> datetime:
    if run.attempt == 1:
        raise OSError("not yet")
    return day


@app.job
def start(day: datetime) -> None:
    second_time.options(delay_seconds=3600).submit(day)


@app.job
async def count(run: RunContext, text: str) -> dict[str, int]:
    words = text.split()
    for number, word in enumerate(words, 1):
        run.progress(number, len(words))
        current_run().log(word)
        run.wait(60)
        run.raise_if_cancelled()
    return {"words": len(words)}


DAY = datetime(2026, 11, 19, tzinfo=UTC)


def test_a_function_is_called_with_a_recorded_context() -> None:
    run = testing.context(attempt=2, now=DAY)
    assert second_time(run, DAY) == DAY
    assert (run.attempt, run.scheduled_for, run.idempotency_key) == (2, DAY, "test")
    with pytest.raises(UsageError) as refused, run.transaction():
        pass
    assert refused.value.specific_code == "no_test_connection"


def test_a_run_inline_has_a_result_a_log_and_a_clock() -> None:
    ran = testing.run_inline(count.call("a b"))
    assert ran.result == {"words": 2}
    assert ran.log == ["a", "b"]
    assert ran.context.progress_reports == [(1, 2), (2, 2)]
    assert ran.context.clock.monotonic() == 120


def test_a_run_inline_can_be_asked_to_stop() -> None:
    run = testing.context()
    run.stop()
    with pytest.raises(RunStopped):
        testing.run_inline(count.call("a"), in_context=run)


def test_what_was_submitted_is_seen_and_drained() -> None:
    with testing.on_temporary_database(app) as jobs:
        start.submit(DAY)
        assert jobs.submitted(start) == [{"day": DAY}]
        assert jobs.drain() == {RunState.SUCCEEDED: 1}
        assert jobs.submitted("second_time") == [{"day": DAY.isoformat().replace("+00:00", "Z")}]
        assert jobs.drain() == {}
        jobs.advance(3600)
        assert jobs.drain() == {RunState.FAILED: 1}
        jobs.advance(61)
        assert jobs.drain() == {RunState.SUCCEEDED: 1}
    with testing.on_temporary_database(app) as jobs:
        assert jobs.submitted(second_time) == []
        assert start.submit(DAY).id == 1
    assert not Path("/nowhere").exists()


def test_the_plug_in_gives_each_test_a_database_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(
        textwrap.dedent("""
        import pytest
        from tsuzuki import Tsuzuki

        app = Tsuzuki("postgresql://nobody@localhost/production")

        @app.job
        def convert(name: str) -> str:
            return name.upper()

        @pytest.mark.parametrize("name", ["a", "b"])
        def test_upload(tsuzuki_test, name):
            jobs = tsuzuki_test(app)
            run = convert.submit(name)
            assert jobs.submitted(convert) == [{"name": name}]
            jobs.drain()
            assert run.result() == name.upper()
    """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
