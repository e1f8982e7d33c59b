"""Groups of failures and the statistics of runs over HTTP, on what really failed and succeeded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.web_client import Client, Served, served_application

COMMANDS = {"good": ["true"], "fails-1": ["sh", "-c", "exit 3"], "fails-2": ["no-such-program"]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        for name, command in COMMANDS.items():
            served.application.jobs.define(name, {"command": command})
        served.application.local_engine.start()
        for name in COMMANDS:
            answer = served.client.post(f"jobs/{name}/runs", {}, Prefer="wait=60")
            assert answer.json["finished_at"], answer.body
        yield served


def listed(client: Client, parameters: str = "") -> list[dict[str, object]]:
    answer = client.get(f"failures?{parameters}")
    assert answer.status == 200, answer.body
    items: list[dict[str, object]] = answer.json["items"]
    return items


def test_groups_are_listed_page_by_page(client: Client) -> None:
    groups = listed(client)
    assert [group["failures"] for group in groups] == [1, 1]
    assert str(groups[0]["last_failed_at"]) > str(groups[1]["last_failed_at"])
    first = client.get("failures?limit=1&count=true").json
    assert (first["items"], first["count"]) == (groups[:1], {"value": 2, "exact": True})
    rest = client.get(f"failures?limit=1&cursor={first['next_cursor']}").json
    assert (rest["items"], rest["next_cursor"]) == (groups[1:], None)
    assert listed(client, "since=2999-01-01T00:00:00Z") == []


def test_a_group_is_acknowledged_once_and_stays_to_be_seen(client: Client) -> None:
    group = listed(client)[1]
    path = f"failures/{group['id']}"
    assert client.get(path).json["job_names"] == ["fails-1"]
    assert client.as_("viewer").post(f"{path}/acknowledge").status == 403
    done = client.as_("operator").post(f"{path}/acknowledge", {"through": group["last_run_id"]})
    assert (done.json["is_open"], done.json["acknowledged_by"]) == (False, "user:operator")
    again = client.post(f"{path}/acknowledge")
    assert (again.status, again.code) == (409, "failures_acknowledged")
    assert group["id"] not in [open_group["id"] for open_group in listed(client)]
    assert group["id"] in [known["id"] for known in listed(client, "acknowledged=true")]


def test_the_runs_of_a_group_are_retried_once(client: Client) -> None:
    group = listed(client)[0]
    retried = client.post(f"failures/{group['id']}/retry").json
    assert [run["run_id"] for run in retried["retried"]] == [group["last_run_id"]]
    new_id = retried["retried"][0]["new_run_id"]
    assert client.get(f"runs/{new_id}").json["retry_of"] == group["last_run_id"]
    assert client.get(f"runs/{new_id}/wait?seconds=60").json["ended"]
    again = client.post(f"failures/{group['id']}/retry").json
    refused = {"run_id": group["last_run_id"], "code": "run_retried"}
    assert refused in again["refused"]
    assert client.post("failures/none/retry").code == "failure_group_unknown"


def test_outcomes_are_counted_by_hour_and_by_job(client: Client) -> None:
    hours = client.get("statistics/hours?hours=3&job=good").json["hours"]
    assert len(hours) == 3
    assert [hour["runs"] for hour in hours if hour["runs"]] == [{"succeeded": 1}]
    assert [hour["p95_seconds"] is None for hour in hours if not hour["runs"]] == [True, True]
    jobs = client.get("statistics/jobs?hours=3").json["jobs"]
    assert [job["job"] for job in jobs] == sorted(COMMANDS)
    good = next(job for job in jobs if job["job"] == "good")
    assert good["runs"] == {"succeeded": 1}
    assert (good["p50_seconds"], good["p95_seconds"]) == (None, None), "one run says nothing"
    assert client.get("statistics/hours?job=god").code == "job_unknown"
    assert client.get("statistics/hours?hours=0").status == 422
