"""Jobs over HTTP: those of the database are changed by version, those of the file in the file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.web_client import Client, Served, served_application
from tsuzuki.services.maintenance import Finding
from tsuzuki.services.read_limit import READ_SECONDS
from tsuzuki.store.sql.read_limit import _LIMIT

ECHO = {"command": ["echo", "hi"]}


def created(client: Client, name: str, **definition: object) -> str:
    """The ETag of a new job."""
    answer = client.post("jobs", {"name": name, "definition": {**ECHO, **definition}})
    assert answer.status == 201, answer.body
    assert answer.headers["location"] == f"/api/v1/jobs/{name}"
    return answer.headers["etag"]


def test_a_job_is_made_read_changed_and_removed(client: Client, served: Served) -> None:
    tag = created(client, "short")
    assert client.get("jobs/short").headers["etag"] == tag
    body = {"definition": {**ECHO, "priority": 5}}
    changed = client.put("jobs/short", body, If_Match=tag)
    assert (changed.status, changed.json["priority"], changed.json["version"]) == (200, 5, 2)
    assert client.delete("jobs/short", If_Match=tag).code == "version_mismatch"
    assert client.delete("jobs/short", If_Match=changed.headers["etag"]).status == 204
    assert client.get("jobs/short").status == 404
    actions = [
        (entry.action, entry.actor)
        for entry in served.application.audit.find(object_type="job", object_id="short")
    ]
    assert actions == [
        ("job.remove", "user:admin"),
        ("job.change", "user:admin"),
        ("job.add", "user:admin"),
    ]


def test_a_change_without_a_version_is_refused(client: Client) -> None:
    created(client, "versioned")
    answer = client.put("jobs/versioned", {"definition": ECHO})
    assert (answer.status, answer.code) == (428, "if_match_missing")
    for no_tag in ("3", '"\u00b2"', '""', f'"{"9" * 19}"'):
        refused = client.put("jobs/versioned", {"definition": ECHO}, If_Match=no_tag)
        assert (refused.status, refused.code) == (400, "if_match_invalid")
    assert client.put("jobs/versioned", {"definition": ECHO}, If_Match="*").status == 200
    assert client.put("jobs/versioned", {"definition": ECHO}, If_Match='"9", "1"').status == 200


def test_of_two_changes_to_one_version_one_is_refused_with_the_difference(client: Client) -> None:
    tag = created(client, "raced")

    def change(priority: int) -> tuple[int, list[dict[str, object]]]:
        definition = {**ECHO, "priority": priority}
        answer = client.put("jobs/raced", {"definition": definition}, If_Match=tag)
        return answer.status, answer.json.get("differences", [])

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(change, [1, 2]), key=lambda answer: answer[0])
    assert [status for status, _ in answers] == [200, 412]
    (difference,) = answers[1][1]
    assert difference["key"] == "priority"
    assert {difference["current"], difference["sent"]} == {1, 2}


def test_a_value_that_one_side_lacks_is_a_null_in_the_difference(client: Client) -> None:
    tag = created(client, "unscheduled")
    body = {"definition": {**ECHO, "schedule": "every 10 minutes"}}
    client.put("jobs/unscheduled", {"definition": {**ECHO, "priority": 1}}, If_Match=tag)
    refused = client.put("jobs/unscheduled", body, If_Match=tag)
    assert refused.status == 412
    assert all(one.keys() == {"key", "current", "sent"} for one in refused.json["differences"])
    assert None in [one["current"] for one in refused.json["differences"]]


def test_a_name_is_taken_once(client: Client) -> None:
    created(client, "taken")
    answer = client.post("jobs", {"name": "taken", "definition": ECHO})
    assert (answer.status, answer.code) == (409, "job_name_taken")


def test_a_job_of_the_file_is_changed_in_the_file(client: Client, workspace: Path) -> None:
    tag = client.get("jobs/from-file").headers["etag"]
    for answer in (
        client.put("jobs/from-file", {"definition": ECHO}, If_Match=tag),
        client.post("jobs", {"name": "from-file", "definition": ECHO}),
        client.delete("jobs/from-file"),
    ):
        assert (answer.status, answer.code) == (409, "job_source")
        where = answer.json["where"]
        assert (where["file"], where["line"]) == (str(workspace / "tsuzuki.yaml"), 2)
    assert client.get("jobs/from-file").status == 200


def test_what_is_wrong_with_a_definition_is_told_part_by_part(client: Client) -> None:
    definition = {"comand": ["true"], "schedule": "sometimes", "priority": "high"}
    answer = client.post("jobs", {"name": "bad", "definition": definition})
    assert answer.status == 422
    assert {problem["where"] for problem in answer.json["problems"]} == {"body.definition"}
    assert 'Did you mean "command"?' in answer.body.decode().replace('\\"', '"')
    answer = client.post("jobs", {"name": "no name", "definition": ECHO})
    assert answer.json["problems"][0]["where"] == "body.name"


def test_a_job_is_switched_off_and_on(client: Client) -> None:
    created(client, "switched")
    assert client.as_("operator").post("jobs/switched/disable").json["enabled"] is False
    assert "tsuzuki job enable switched" in client.get("jobs/switched/explain").json["why"]
    names = [job["name"] for job in client.get("jobs?enabled=false").json["items"]]
    assert names == ["switched"]
    assert client.as_("operator").post("jobs/switched/enable").json["enabled"] is True


def test_the_next_times_are_told(client: Client) -> None:
    created(client, "daily", schedule="daily at 02:30")
    times = client.get("jobs/daily/next?count=3").json["times"]
    assert len(times) == 3
    assert all(moment.endswith("T02:30:00.000000Z") for moment in times)
    created(client, "unplanned")
    assert client.get("jobs/unplanned/next").code == "no_schedule"


def test_secrets_of_a_definition_are_masked(client: Client, served: Served) -> None:
    environment = {"GITLAB_TOKEN": "glpat-1234567890", "PLAIN": "seen"}
    created(client, "secretive", environment=environment, arguments={"password": "hunter22"})
    text = client.get("jobs/secretive").body.decode()
    text += client.get("audit?object_id=secretive").body.decode()
    assert "seen" in text
    assert "glpat" not in text
    assert "hunter22" not in text
    assert served.application.jobs.get("secretive").spec.arguments["password"] == "hunter22"


def test_secrets_of_a_refused_change_are_masked(client: Client) -> None:
    environment = {"GITLAB_TOKEN": "glpat-1234567890", "PLAIN": "seen"}
    tag = created(client, "outdated", environment=environment)
    body = {"definition": {**ECHO, "priority": 3, "environment": environment}}
    assert client.put("jobs/outdated", body, If_Match=tag).status == 200
    changed = {**environment, "GITLAB_TOKEN": "glpat-0987654321", "PLAIN": "other"}
    body = {"definition": {**ECHO, "environment": changed}}
    refused = client.put("jobs/outdated", body, If_Match=tag)
    assert refused.code == "version_mismatch"
    text = refused.body.decode()
    assert "glpat" not in text
    assert "other" in text


def test_a_secret_in_a_file_is_masked_like_one_of_the_environment(tmp_path: Path) -> None:
    secrets = {"file": "key-of-the-books-1", "direct": "smtp-password-1", "url": "redis%20word"}
    (tmp_path / "key").write_text(secrets["file"] + "\n", encoding="utf-8")
    environ = {
        "TSUZUKI_BOOKS_API_KEY_FILE": "key",
        "TSUZUKI_BOOKS_MAIL_PASSWORD": secrets["direct"],
        "TSUZUKI_REDIS_URL": f"redis://user:{secrets['url']}@127.0.0.1:1/0",
    }
    with served_application(tmp_path, environ=environ) as served:
        text = " ".join([*secrets.values(), "redis word"])
        served.application.events.emit("told", {"text": text})
        answer = served.client.get("events").json
        assert answer["items"][0]["payload"] == {"text": "*** *** *** ***"}
        unknown = served.client.get(f"jobs/{secrets['file']}")
        assert (unknown.status, unknown.json["detail"]) == (404, "there is no job '***'")


def test_a_value_of_the_environment_is_masked_wherever_it_stands(tmp_path: Path) -> None:
    secret = "s3cret-of-the-environment"
    text = "log_archive: ./logs-${OUR_SECRET}\njobs: {}\n"
    (tmp_path / "tsuzuki.yaml").write_text(text, encoding="utf-8")
    with served_application(tmp_path, environ={"OUR_SECRET": secret}) as served:
        served.application.jobs.define("hello", {"command": ["true"], "description": f"a {secret}"})
        served.application.events.emit("told", {"text": f"[{secret}]"})
        start = served.client.post("jobs/hello/runs", {"arguments": {"note": secret}})
        texts = [start.body, served.client.get("jobs").body, served.client.get("events").body]
        texts += [served.client.get("audit").body, served.client.get("runs").body]
        assert all(b"***" in body and secret.encode() not in body for body in texts)


def test_the_file_is_applied_after_a_look(client: Client, workspace: Path) -> None:
    file = workspace / "tsuzuki.yaml"
    before = file.read_text(encoding="utf-8")
    file.write_text(before + '  later: {command: ["true"]}\n', encoding="utf-8")
    wanted = {"changes": [{"kind": "add", "name": "later", "keys": []}]}
    assert client.post("jobs/apply", {"dry_run": True}).json == wanted
    assert client.post("jobs/apply").json == wanted
    assert client.post("jobs/apply").json == {"changes": []}
    assert client.as_("operator").post("jobs/apply").status == 403
    file.write_text(before, encoding="utf-8")
    client.post("jobs/apply")


def test_a_check_of_the_database_has_a_longer_limit_than_other_questions(
    client: Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []

    def check() -> list[Finding]:
        limits.append(_LIMIT.get())
        return []

    monkeypatch.setattr(served.application.maintenance, "check", check)
    assert client.get("database/check").status == 200
    (limit,) = limits
    assert limit is not None
    assert limit.seconds > READ_SECONDS
    assert "tsuzuki db check" in limit.hint


def test_the_database_is_checked(client: Client) -> None:
    checked = client.get("database/check").json
    assert checked["ok"]
    assert {finding["problem"] for finding in checked["findings"]} == {None}


def test_a_name_is_searched_for_with_up_to_100_characters(client: Client) -> None:
    assert client.get(f"jobs?search={'x' * 100}").status == 200
    assert client.get(f"jobs?search={'x' * 101}").status == 422
