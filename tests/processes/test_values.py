"""Values that cannot be stored, from handlers in a real process: each fails its own run, and the others go on."""

from pathlib import Path

import pytest

from support.daemons import TIMEOUT_SECONDS, Daemons
from support.factories import add_job, spec
from support.history_checker import check_history
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

HANDLER = """
def returning(run, *, kind):
    if kind == "progress":
        run.progress(True)
    if kind == "log":
        run.log("a\\\\x00b\\\\ud800" * 10_000)
    if kind == "error":
        raise ValueError("e\\\\x00\\\\udfff" * 100_000)
    return {
        "large": "x" * 2_000_000,
        "number": float("nan"),
        "object": object(),
        "surrogate": "a\\\\ud800b",
        "zero": {"text": "a\\\\x00b"},
    }.get(kind, kind)
""".replace("\\\\", "\\")

ENDS = {
    "progress": RunState.FAILED,
    "large": RunState.FAILED,
    "number": RunState.FAILED,
    "object": RunState.FAILED,
    "error": RunState.FAILED,
    "log": RunState.SUCCEEDED,
    "surrogate": RunState.SUCCEEDED,
    "zero": RunState.SUCCEEDED,
    "fine": RunState.SUCCEEDED,
}


def test_a_value_that_cannot_be_stored_fails_its_run_only(
    quick_database: Database, runs: Runs, daemons: Daemons, tmp_path: Path
) -> None:
    (tmp_path / "odd_handler.py").write_text(HANDLER)
    options = {"function": "odd_handler:returning"}
    add_job(quick_database, spec("odd", handler="python", options=options))
    submitted = {
        kind: runs.submit(Request(job="odd", arguments={"kind": kind})).run_id for kind in ENDS
    }
    daemon = daemons.start("up", "--capacity", str(len(ENDS)))
    found = {
        kind: runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS).state
        for kind, run_id in submitted.items()
    }
    assert found == ENDS
    again = runs.submit(Request(job="odd", arguments={"kind": "fine"}))
    assert runs.wait(again.run_id, timeout_seconds=TIMEOUT_SECONDS).state is RunState.SUCCEEDED
    assert daemon.count("step failed, retrying") == 0
    daemons.stop_all()
    check_history(quick_database)
