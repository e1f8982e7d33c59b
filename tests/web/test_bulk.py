"""Bulk actions over HTTP: preview, confirm, follow; the engine carries them out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.web_client import Client, Served, served_application


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        for name in ("waiting", "other"):
            served.application.jobs.define(name, {"command": ["true"], "max_concurrent": 1})
        yield served


def pending(client: Client, count: int, job: str = "waiting") -> list[int]:
    return [client.post(f"jobs/{job}/runs", {}).json["id"] for _ in range(count)]


def preview(client: Client, **conditions: object) -> dict[str, object]:
    answer = client.post("bulk", {"verb": "cancel", "filter": conditions})
    assert answer.status == 201, answer.body
    found: dict[str, object] = answer.json
    assert answer.headers["location"] == f"/api/v1/bulk/{found['id']}"
    return found


def test_what_is_wrong_with_a_filter_is_told_with_its_place(client: Client) -> None:
    def problem(verb: str, **conditions: object) -> tuple[int, str, str | None]:
        answer = client.post("bulk", {"verb": verb, "filter": conditions})
        parts = answer.json.get("problems", [{}])
        return answer.status, answer.code, parts[0].get("where")

    assert problem("cancel", state=["SUCCEEDED"]) == (422, "bulk_states", None)
    assert problem("cancel", job=["none"]) == (404, "job_unknown", None)
    everything = {"job": ["other"], "exclude_job": ["other"]}
    impossible = (422, "filter_impossible", "body.filter.exclude_job")
    assert problem("cancel", **everything) == impossible
    assert problem("cancel", stat=["FAILED"]) == (422, "unknown_field", "body.filter.stat")
    answer = client.post("bulk", {"verb": "cancel", "filter": {"stat": ["FAILED"]}})
    assert answer.json["hint"].startswith('Did you mean "state"?')
    assert client.post("bulk", {"verb": "cancel"}).json["problems"][0]["where"] == "body.filter"


def test_a_bulk_action_is_previewed_confirmed_and_carried_out(
    client: Client, served: Served
) -> None:
    run_ids = pending(client, 12)
    others = pending(client, 1, "other")
    found = preview(client, job=["waiting"])
    assert (found["state"], found["matched"], found["done"]) == ("previewed", 12, 0)
    assert [run["id"] for run in found["samples"]] == run_ids[:10]  # type: ignore[attr-defined, index]  # JSON
    assert found["filter"]["job"] == ["waiting"]  # type: ignore[index]  # JSON
    assert client.post(f"bulk/{found['id']}/stop").code == "bulk_not_running"
    confirmed = client.as_("operator").post(f"bulk/{found['id']}/confirm")
    assert (confirmed.status, confirmed.json["confirmed_by"]) == (202, "user:operator")
    assert confirmed.json["run_id"] is None
    assert confirmed.headers["location"] == f"/api/v1/bulk/{found['id']}"
    assert client.post(f"bulk/{found['id']}/confirm").code == "bulk_confirmed"
    served.application.local_engine.start()
    served.application.bulk.wait(found["id"])  # type: ignore[arg-type]  # JSON
    done = client.get(f"bulk/{found['id']}").json
    assert (done["state"], done["done"]) == ("done", 12)
    first = client.get(f"bulk/{found['id']}/results?limit=8&count=true").json
    assert first["count"] == {"value": 12, "exact": True}
    cursor = first["next_cursor"]
    rest = client.get(f"bulk/{found['id']}/results?limit=8&cursor={cursor}").json
    results = first["items"] + rest["items"]
    assert [(result["run_id"], result["result"]) for result in results] == [
        (run_id, "canceled") for run_id in run_ids
    ]
    assert client.get(f"runs/{others[0]}/wait?seconds=60").json["run"]["state"] == "SUCCEEDED"


def test_bulk_actions_are_listed_the_newest_first(client: Client) -> None:
    made = [preview(client, job=["other"])["id"] for _ in range(2)]
    listed = client.get("bulk?limit=2&count=true").json
    assert [item["id"] for item in listed["items"]] == made[::-1]
    assert listed["count"]["value"] >= 2
    assert client.get("bulk/999999").code == "bulk_unknown"
    assert client.as_("viewer").get("bulk").status == 200
    assert client.as_("viewer").post("bulk", {}).status == 403
