"""Runs over HTTP, on a workspace with an engine in the same process."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.web_client import TIMEOUT_SECONDS, Client, Served, served_application
from tsuzuki.services.runs import RunFilter


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        jobs = served.application.jobs
        jobs.define("hello", {"command": ["echo", "hello"]})
        jobs.define("failing", {"command": ["false"]})
        jobs.define("endless", {"command": ["sleep", "600"], "concurrency_policy": "allow"})
        noise = ["printf", "\\033[31mred\\033[0m\\t\\342\\200\\256bidi <script>\\nsecond\\n"]
        jobs.define("noisy", {"command": noise})
        served.application.settings.set("kill_grace_seconds", 0)
        served.application.local_engine.start()
        yield served


def started(client: Client, job: str = "hello", **body: object) -> dict[str, object]:
    answer = client.post(f"jobs/{job}/runs", body, Prefer="wait=30")
    assert answer.status == 201, answer.body
    assert answer.headers["preference-applied"] == "wait=30"
    run: dict[str, object] = answer.json
    assert answer.headers["location"] == f"/api/v1/runs/{run['id']}"
    return run


def test_a_run_is_started_and_waited_for(client: Client) -> None:
    run = started(client, arguments={"month": 11, "api_key": "abcdefgh"})
    assert run["state"] == "SUCCEEDED"
    assert run["arguments"] == {"month": 11, "api_key": "***"}
    detail = client.get(f"runs/{run['id']}").json
    assert [move["to_state"] for move in detail["history"]] == ["ASSIGNED", "RUNNING", "SUCCEEDED"]
    assert client.get(f"runs/{run['id']}/history").json == detail["history"]
    assert client.get(f"runs/{run['id']}/explain").json["reasons"][0]["cause"] == "ended"


def test_without_a_preference_the_answer_does_not_wait(client: Client) -> None:
    answer = client.post("jobs/endless/runs")
    assert (answer.status, "preference-applied" in answer.headers) == (201, False)
    run_id = answer.json["id"]
    assert client.get(f"runs/{run_id}/wait?seconds=0.1").json["ended"] is False
    canceled = client.as_("operator").post(f"runs/{run_id}/cancel")
    assert canceled.json["state"] == "CANCELED"
    again = client.post(f"runs/{run_id}/cancel")
    assert (again.status, again.code) == (409, "run_ended")
    audit = client.get(f"audit?object_type=run&object_id={run_id}").json["items"]
    assert [(entry["action"], entry["actor"]) for entry in audit] == [
        ("run.cancel", "user:operator"),
        ("run.start", "user:admin"),
    ]


def test_one_reader_waits_for_all_waiters(client: Client, served: Served) -> None:
    run_id = client.post("jobs/endless/runs").json["id"]
    threads = threading.active_count()
    with ThreadPoolExecutor(30) as pool:
        waits = [pool.submit(client.get, f"runs/{run_id}/wait?seconds=60") for _ in range(30)]
        assert client.get("/livez").status == 200
        assert threading.active_count() - threads <= 30 + 12 + 2  # ours, and the pool of services
        client.post(f"runs/{run_id}/cancel")
        assert all(wait.result().json["ended"] for wait in waits)


def test_a_failed_run_is_retried_once(client: Client) -> None:
    run = started(client, "failing")
    assert (run["state"], run["reason"]) == ("FAILED", "handler_failed")
    retry = client.post(f"runs/{run['id']}/retry")
    assert (retry.status, retry.json["retry_of"]) == (201, run["id"])
    assert client.post(f"runs/{run['id']}/retry").code == "run_retried"
    assert client.get(f"runs/{run['id']}").json["retried_as"] == retry.json["id"]


def test_the_same_key_ten_times_at_once_is_one_run(client: Client, served: Served) -> None:
    def count() -> int:
        return served.application.runs.count(RunFilter(job_name="hello"), at_most=1000)

    before = count()
    with ThreadPoolExecutor(10) as pool:
        answers = list(
            pool.map(lambda _: client.post("jobs/hello/runs", {}, Idempotency_Key="ten"), range(10))
        )
    assert count() == before + 1
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer.json["id"] for answer in answers if answer.status == 201}) == 1
    refused = [answer for answer in answers if answer.status == 409]
    assert all(a.code == "request_in_flight" and a.headers["retry-after"] for a in refused)


def test_the_same_key_gives_the_first_answer_and_another_body_is_refused(client: Client) -> None:
    body = {"arguments": {"n": 1}}
    first = client.post("jobs/hello/runs", body, Idempotency_Key="k1")
    again = client.post("jobs/hello/runs", body, Idempotency_Key="k1")
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post("jobs/hello/runs", {"arguments": {"n": 2}}, Idempotency_Key="k1")
    assert (other.status, other.code) == (422, "idempotency_key_used")
    elsewhere = client.post("jobs/failing/runs", body, Idempotency_Key="k1")
    assert elsewhere.code == "idempotency_key_used"
    operator = client.as_("operator").post("jobs/hello/runs", body, Idempotency_Key="k1")
    assert operator.json["id"] != first.json["id"]


def test_a_refused_request_does_not_use_its_key_up(client: Client) -> None:
    assert client.post("jobs/none/runs", {}, Idempotency_Key="k2").status == 404
    assert client.post("jobs/hello/runs", {"x": 1}, Idempotency_Key="k2").status == 422
    assert client.post("jobs/hello/runs", {}, Idempotency_Key="k2").status == 201
    assert client.post("jobs/hello/runs", {}, Idempotency_Key="a b").status == 422


def test_the_log_is_there_as_lines_as_text_and_as_events(client: Client) -> None:
    run_id = started(client, "noisy")["id"]
    page = client.get(f"runs/{run_id}/logs").json
    assert [line["seq"] for line in page["lines"]] == [1, 2]
    assert page["lines"][0]["body"] == "\x1b[31mred\x1b[0m\t\u202ebidi <script>"
    assert client.get(f"runs/{run_id}/logs?limit=1").json["next_after"] == 1
    text = client.get(f"runs/{run_id}/logs/text")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["content-disposition"].startswith("attachment")
    assert text.body.decode() == "\\x1b[31mred\\x1b[0m\t\\u202ebidi <script>\nsecond\n"
    stream = client.get(f"runs/{run_id}/logs/stream")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert [line for line in stream.body.decode().splitlines() if line.startswith("id")] == [
        "id: 1",
        "id: 2",
    ]
    assert "event: end" in stream.body.decode()
    resumed = client.get(f"runs/{run_id}/logs/stream", Last_Event_ID="1").body.decode()
    data = [json.loads(line[6:]) for line in resumed.splitlines() if line.startswith('data: {"s')]
    assert [line["seq"] for line in data] == [2]
    beyond = client.get(f"runs/{run_id}/logs/stream?after=77").body.decode()
    assert [line for line in beyond.splitlines() if line] == ["event: end", "data: {}"]
    assert client.get("runs/999999/logs/stream").status == 404
    assert client.get("runs/999999/logs/text").status == 404


def test_the_server_stops_in_time_although_streams_are_open(tmp_path: Path) -> None:
    with served_application(tmp_path) as served:
        served.application.jobs.define("waiting", {"command": ["true"]})
        run_id = served.client.post("jobs/waiting/runs").json["id"]
        streams = []
        for _ in range(50):
            connection = HTTPConnection(urlsplit(served.server.url).netloc, timeout=TIMEOUT_SECONDS)
            path = f"/api/v1/runs/{run_id}/logs/stream"
            connection.request("GET", path, headers={"Authorization": "Bearer viewer"})
            streams.append((connection, connection.getresponse()))
        assert served.server.stop()
        for connection, answer in streams:
            assert answer.read() == b""
            connection.close()


def test_a_list_says_how_runs_ended_and_why_others_wait(client: Client) -> None:
    run_id = client.post("jobs/hello/runs", {"delay_seconds": 3600}).json["id"]
    (waiting,) = client.get("runs?job=hello&state=PENDING").json["items"]
    assert (waiting["id"], waiting["outcome"]) == (run_id, None)
    assert waiting["waits_for"]["cause"] == "not_due"
    assert client.post(f"runs/{run_id}/cancel").json["outcome"] == "canceled"
    canceled = client.get("runs?job=hello&outcome=canceled").json["items"]
    assert [(run["id"], run["waits_for"]) for run in canceled] == [(run_id, None)]
    assert client.get("runs?job=hello&outcome=skipped").json["items"] == []
