"""What is done on the pages of the system, over plain HTTP: failures, workers, events; who may, and what is noted."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.factories import add_worker
from support.web_client import Client, Served, served_application
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.bulk import BulkState
from tsuzuki.services.runs import Request
from tsuzuki.store import workers
from tsuzuki.store.sql.sqlite_lock import LockHolder, remove_note, write_note
from tsuzuki.web.pages.route import FORM_TYPE


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a leader, a worker, and two runs that failed for one cause."""
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        served.application.jobs.define("fails", {"command": ["sh", "-c", "exit 3"]})
        served.application.jobs.define("waits", {"command": ["true"], "on_event": "order.created"})
        served.application.local_engine.start()
        for _ in range(2):
            answer = served.client.post("jobs/fails/runs", {}, Prefer="wait=60")
            assert answer.json["finished_at"], answer.body
        yield served


@pytest.fixture
def client(served: Served) -> Client:
    return served.client


def page(client: Client, path: str) -> str:
    answer = client.get(path, Accept="text/html")
    assert answer.status == 200, answer.body
    return answer.body.decode()


def send(client: Client, path: str, **fields: object) -> tuple[int, str]:
    """The status of a posted form, and where it leads or what it answers."""
    raw = urlencode(fields).encode()
    answer = client.request("POST", path, raw=raw, headers={"Content-Type": FORM_TYPE})
    return answer.status, answer.headers.get("location") or answer.body.decode()


def test_the_overview_says_in_one_sentence_how_it_is(client: Client) -> None:
    text = page(client, "/")
    assert "1 issue needs attention" in text
    view = client.get("/overview.json").json
    assert (view["health"], view["engine"]["is_led"]) == ("attention", True)
    assert view["ended"]["failed"] == 2
    assert [group["failures"] for group in view["failures"]] == [2]


def test_the_overview_names_the_run_that_holds_the_write_lock(served: Served) -> None:
    file = served.application.maintenance.lock_file
    assert file is not None
    since = datetime(2026, 3, 1, 12, tzinfo=UTC)
    holder = LockHolder(pid=os.getpid(), run_id=7, job="import", since=since)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write_note(file, holder)
        text = page(served.client, "/")
        found = served.client.get("/overview.json").json["attention"]
    (locked,) = [item for item in found if item["need"] == "locked"]
    assert (locked["run_id"], "import" in locked["about"]) == (7, True)
    assert "/runs/7" in text
    remove_note(file)


def test_the_overview_names_a_library_transaction_that_holds_the_write_lock(
    served: Served,
) -> None:
    file = served.application.maintenance.lock_file
    assert file is not None
    since = datetime(2026, 3, 1, 12, tzinfo=UTC)
    holder = LockHolder(pid=os.getpid(), purpose="app.transaction()", since=since)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write_note(file, holder)
        text = page(served.client, "/")
        found = served.client.get("/overview.json").json["attention"]
    (locked,) = [item for item in found if item["need"] == "locked"]
    about = f"app.transaction() in process {os.getpid()}"
    assert (locked["about"], locked["since"]) == (about, "2026-03-01T12:00:00.000000Z")
    assert about in text
    remove_note(file)


def test_a_group_is_retried_by_a_bulk_action_with_its_count(served: Served) -> None:
    (group,) = served.application.failures.find()
    found = served.client.get(f"/runs.json?window=all&failure_group={group.id}").json
    assert found["count"] == {"value": 2, "exact": True}
    status, place = send(served.client.as_("operator"), f"/failures/{group.id}/retry")
    assert status == 303
    assert "Retry 2 runs?" in page(served.client, place)
    action = served.application.bulk.find()[0]
    assert (action.state, action.action.matched) == (BulkState.PREVIEWED, 2)


def test_a_group_is_acknowledged_once_as_far_as_it_was_seen(served: Served) -> None:
    (group,) = served.application.failures.find()
    path = f"/failures/{group.id}/acknowledge"
    seen = group.last_run_id - 1
    assert send(served.client, path, through=seen)[0] == 303
    assert served.application.failures.get(group.id).group.is_open
    status, text = send(served.client, path, through=seen)
    assert status == 409
    assert "already acknowledged" in text
    assert served.application.audit.find(object_type="failure_group")[0].actor == "user:admin"


def test_only_the_term_that_was_shown_is_ended(served: Served) -> None:
    epoch = served.application.workers.leader().epoch
    assert f'name="epoch" value="{epoch}"' in page(served.client, "/workers/step-down")
    status, text = send(served.client, "/workers/step-down", epoch=epoch + 1)
    assert (status, "is over" in text) == (409, True)
    assert send(served.client, "/workers/step-down", epoch=epoch) == (303, "/workers")
    terms = served.client.get("/workers.json").json["terms"]
    assert terms[-1]["epoch"] == 1
    assert next(term for term in terms if term["epoch"] == epoch)["ended_at"] is not None


def test_a_worker_is_drained_after_a_question_that_names_it(served: Served) -> None:
    (worker,) = served.client.get("/workers.json").json["workers"]
    path = f"/workers/{worker['id']}"
    assert worker["id"] in page(served.client, f"{path}/detach")
    assert "The worker has no runs." in page(served.client, f"{path}/drain")
    assert send(served.client, f"{path}/drain") == (303, "/workers")
    assert served.application.audit.find(object_type="worker")[0].action == "worker.drain"
    assert send(served.client, "/workers/none/drain")[0] == 404
    assert send(served.client, "/workers/none/detach")[0] == 404


def test_an_event_is_emitted_once_for_a_form(served: Served) -> None:
    fields = {"event_type": "order.created", "payload": '{"order": 7}', "form_key": "once"}
    status, place = send(served.client, "/events/emit", **fields)
    assert status == 303
    assert send(served.client, "/events/emit", **fields)[1] == place
    assert "waits" in page(served.client, place)
    event = served.client.get(f"{place}.json").json["event"]
    assert event["payload"] == {"order": 7}
    (entry,) = served.application.audit.find(object_type="event")
    assert (entry.actor, entry.object_id) == ("user:admin", str(event["id"]))


def test_what_was_typed_stays_when_it_is_wrong(client: Client) -> None:
    fields = {"event_type": "order.created", "payload": '{"order": 7', "form_key": "key"}
    status, text = send(client, "/events/emit", **fields)
    assert status == 422
    assert "the payload is not JSON" in text
    assert "{&#34;order&#34;: 7</textarea>" in text
    assert send(client, "/events/emit", **{**fields, "event_type": ""})[0] == 422


def test_changes_are_filtered_by_their_chips_and_lead_to_their_object(client: Client) -> None:
    fields = {"event_type": "order.created", "payload": "{}", "form_key": "filtered"}
    _, place = send(client, "/events/emit", **fields)
    text = page(client, "/audit?object_type=event&actor=user%3Aadmin")
    assert text.count("chip-value") == 2
    assert f'href="{place}"' in text
    assert "event.emit" in text
    assert "job.add" not in text
    assert "No matching changes" in page(client, "/audit?object_type=nothing")


def test_those_who_may_not_act_see_no_button(served: Served) -> None:
    group = served.application.failures.find(with_acknowledged=True)[0].id
    for path, button in {
        f"/failures/{group}": "Retry all …",
        "/workers": "Step down …|Drain …|Detach …",
        "/events": "Emit event …",
    }.items():
        assert re.search(button, page(served.client, path)), path
        assert not re.search(button, page(served.client.as_("viewer"), path)), path


def test_a_job_that_no_worker_can_execute_is_told_with_what_is_missing(served: Served) -> None:
    jobs, database = served.application.jobs, served.application.workers._database
    add_worker(database, "unable", abilities=Abilities(kinds=frozenset({"python"})))
    jobs.define("elsewhere", {"python": "no_such_package:work"})
    served.application.runs.submit(Request(job="elsewhere"))
    try:
        attention = served.client.get("/overview.json").json["attention"]
        (told,) = [item for item in attention if item["need"] == "handler"]
        assert told["about"] == "elsewhere"
        assert "no_such_package" in told["detail"]
        assert "no_such_package" in page(served.client, "/")
    finally:
        jobs.discard("elsewhere", version=None)
        with database.write() as connection:
            workers.deregister(connection, "unable")
