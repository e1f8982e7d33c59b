"""The live stack of a run over HTTP: asked of the worker, as JSON and as a page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import wait_until
from support.web_client import SESSION_COOKIE, Served, served_application
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request

SOURCE = """
def waits_here(run):
    run.progress(1)
    run.wait(600)
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "stack_work.py").write_text(SOURCE)
    with served_application(tmp_path) as served:
        yield served


def test_where_a_function_is_right_now_is_told_as_json_and_on_a_page(served: Served) -> None:
    application = served.application
    keys = {"python": "stack_work:waits_here", "isolation": "process"}
    application.jobs.define_many({"waits": keys})
    run_id = application.runs.submit(Request(job="waits")).run_id
    waiting = served.client.get(f"runs/{run_id}/stack")
    assert waiting.json == {"run_id": run_id, "stack": None, "at": None}
    application.local_engine.start()
    wait_until(lambda: application.runs.get(run_id).run.progress_processed == 1, "there")
    told = served.client.get(f"runs/{run_id}/stack").json
    assert "in waits_here" in told["stack"]
    assert told["at"] is not None
    signed_in = {"Accept": "text/html", "Cookie": f"{SESSION_COOKIE}=admin"}
    page = served.client.as_(None).request("GET", f"/runs/{run_id}/stack", headers=signed_in)
    assert page.status == 200
    assert b"in waits_here" in page.body
    application.runs.cancel(run_id)
    assert application.runs.get(run_id).run.state is RunState.CANCELED
