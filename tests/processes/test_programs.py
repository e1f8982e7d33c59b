"""Programs with functions of their own beside other workers on one database: each executes its own runs only."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from processes.test_dying import add_command
from support.daemons import TIMEOUT_SECONDS, Daemons, eventually
from support.history_checker import check_history
from tsuzuki import Tsuzuki
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services.explain import Cause
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

SHOP_JOBS = """
import os
from tsuzuki import Tsuzuki

app = Tsuzuki(os.environ["TSUZUKI_DATABASE_URL"])

@app.job(max_retries=3)
def summarise() -> str:
    return "by the shop"
"""

LASTING_JOBS = """
import os
from pathlib import Path
from tsuzuki import RunContext, Tsuzuki

app = Tsuzuki(os.environ["TSUZUKI_DATABASE_URL"])

@app.job
def lasting(run: RunContext) -> int:
    if run.attempt == 1:
        Path(__file__).with_name("started").touch()
        run.wait(600)
    return run.attempt

if __name__ == "__main__":
    import threading
    from lasting_jobs import app
    with app.running(lead=False):
        threading.Event().wait(600)
"""

SUBMIT = """
from shop_jobs import app
print(app.submit("summarise").id)
"""

WORK = """
from shop_jobs import app
with app.running(lead=False):
    print(app.submit("summarise").result(timeout_seconds=100))
"""

SCRIPT = """
import json, os, sys
from tsuzuki import Tsuzuki
from tsuzuki.model.errors import Conflict

app = Tsuzuki(os.environ["TSUZUKI_DATABASE_URL"])

@app.job(sys.argv[1])
def work() -> str:
    return "{said}"

try:
    run = app.submit(sys.argv[1])
except Conflict as problem:
    print(json.dumps(problem.specific_code))
else:
    result = None
    if "--run" in sys.argv:
        with app.running():
            result = run.result(timeout_seconds=100)
    print(json.dumps([run.id, result]))
"""


def printed(script: Path, *arguments: str, url: str) -> Any:
    """What a script prints last, as JSON or text."""
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "TSUZUKI_DATABASE_URL": url},
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    return json.loads(line) if line[0] in '["0123456789' else line


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_a_worker_without_the_code_leaves_the_runs_of_a_program_alone(
    quick_database: Database, database_url: str, daemons: Daemons, runs: Runs, tmp_path: Path
) -> None:
    add_command(quick_database, "later", "true")
    daemons.start("up")
    written(tmp_path / "shop" / "shop_jobs.py", SHOP_JOBS)
    run_id = printed(written(tmp_path / "shop" / "submit.py", SUBMIT), url=database_url)
    later = runs.submit(Request(job="later", priority=-10)).run_id
    assert runs.wait(later, timeout_seconds=TIMEOUT_SECONDS).state is RunState.SUCCEEDED
    assert runs.get(run_id).run.state is RunState.PENDING
    assert [reason.cause for reason in runs.explain(run_id).reasons] == [Cause.NO_HANDLER]
    said = printed(written(tmp_path / "shop" / "work.py", WORK), url=database_url)
    assert said == "by the shop"
    done = runs.get(run_id).run
    assert (done.state, done.result, done.attempt) == (RunState.SUCCEEDED, "by the shop", 1)
    check_history(quick_database)


def test_a_program_executes_no_function_of_another_that_has_the_same_name(
    quick_database: Database, database_url: str, runs: Runs, tmp_path: Path
) -> None:
    first = written(tmp_path / "first" / "work.py", SCRIPT.format(said="by the first"))
    second = written(tmp_path / "second" / "work.py", SCRIPT.format(said="by the second"))
    waiting, _ = printed(first, "of-first", url=database_url)
    _, result = printed(second, "of-second", "--run", url=database_url)
    assert result == "by the second"
    assert runs.get(waiting).run.state is RunState.PENDING
    assert printed(second, "of-first", url=database_url) == "job_of_other_program"
    first.write_text(SCRIPT.format(said="by the first, edited"))
    printed(first, "of-first", "--run", url=database_url)
    done = eventually(
        lambda: (run := runs.get(waiting).run).state.is_final and run, what="the first one's run"
    )
    assert (done.state, done.result) == (RunState.SUCCEEDED, "by the first, edited")
    check_history(quick_database)


def test_a_handle_follows_the_work_of_a_worker_that_was_killed(
    quick_database: Database, database_url: str, tmp_path: Path
) -> None:
    script = written(tmp_path / "lasting" / "lasting_jobs.py", LASTING_JOBS)

    def worker() -> subprocess.Popen[bytes]:
        environ = {**os.environ, "TSUZUKI_DATABASE_URL": database_url}
        return subprocess.Popen([sys.executable, str(script)], env=environ, cwd=script.parent)

    with Tsuzuki(database_url, environ={}) as app:
        app.define("lasting", python="lasting_jobs:lasting", concurrency_policy="allow")
        with app.running(work=False):
            first = worker()
            handle = app.submit("lasting")
            eventually(script.with_name("started").exists, what="the first attempt")
            first.kill()
            first.wait()
            second = worker()
            try:
                assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == 2
            finally:
                second.kill()
                second.wait()
        lost, done = handle.attempts()
    assert lost.state is RunState.FAILED
    assert (lost.id, lost.reason, done.retry_of) == (handle.id, Reason.WORKER_LOST, lost.id)
    check_history(quick_database)
