"""Verifications over HTTP and on their page: start one, read its result, and who may."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.git_histories import straight
from support.web_client import Client, Served, served_application
from support.workspace import process_environment
from tsuzuki.cli import run_cli
from tsuzuki.web.pages.route import FORM_TYPE


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a collected branch of which a commit is missing, and an engine."""
    folder: Path = tmp_path_factory.mktemp("workspace")
    straight(folder / "served" / "atlas.git", 5)
    (folder / "tsuzuki.yaml").write_text("version: 1\njobs: {}\n")
    for words in (["commits", "add-target", "served/atlas.git"], ["commits", "collect"]):
        assert run_cli(words, environ=process_environment({}), cwd=folder) == 0
    with closing(sqlite3.connect(folder / "tsuzuki.db")) as connection, connection:
        connection.execute("DELETE FROM commits WHERE sha = (SELECT min(sha) FROM commits)")
    with served_application(folder) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Client:
    return served.client


def page(client: Client, language: str = "en") -> str:
    answer = client.get("/verification", Accept="text/html", **{"Accept-Language": language})
    assert answer.status == 200, answer.body
    return answer.body.decode()


def test_before_the_first_verification_list_and_page_are_empty(client: Client) -> None:
    assert client.get("verifications").json["items"] == []
    assert "No verifications yet" in page(client)
    assert "まだ検証していません" in page(client, "ja")
    twin = client.get("/verification.json").json
    assert (twin["latest"], twin["runs"]) == (None, [])
    assert twin["parts"] == ["ticks", "books", "index", "commits", "feeds"]


def test_an_unknown_part_is_a_problem_and_a_viewer_may_not_start_one(client: Client) -> None:
    refused = client.post("verifications", {"parts": ["comits"]})
    assert (refused.status, refused.code) == (422, "part_unknown")
    assert client.post("verifications", {"days": 0}).status == 422
    assert client.as_("viewer").post("verifications", {}).status == 403
    assert client.as_("viewer").get("verifications").status == 200


def test_a_verification_is_started_and_its_result_names_what_is_missing(
    client: Client, served: Served
) -> None:
    started = client.as_("operator").post("verifications", {"parts": ["ticks", "commits"]})
    assert started.status == 202, started.body
    run_id = started.json["run_id"]
    assert started.headers["location"] == f"/api/v1/runs/{run_id}"
    assert client.get("verifications").json["items"][0]["ok"] is None
    served.application.local_engine.start()
    served.application.runs.wait(run_id, timeout_seconds=60)
    found = client.get("verifications").json["items"][0]
    assert (found["run_id"], found["state"], found["ok"]) == (run_id, "FAILED", False)
    ticks, commits = found["parts"]
    assert (ticks["ok"], commits["ok"], commits["faults"]) == (True, False, 1)
    (fault,) = commits["shown"][0]["named"]
    assert fault["kind"] == "missing"
    text = page(client)
    assert fault["name"] in text
    assert "Discrepancies found" in text
    assert "不一致あり" in page(client, "ja")
    assert client.get("/verification.json").json["latest"]["run_id"] == run_id


def test_the_form_of_the_page_starts_one_run_however_often_it_is_sent(client: Client) -> None:
    once = re.findall(r'name="once" value="([^"]+)"', page(client))[0]
    raw = urlencode({"part": "ticks", "once": once}).encode()
    headers = {"Content-Type": FORM_TYPE}
    answers = [
        client.request("POST", "/verification/start", raw=raw, headers=headers) for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [303, 303]
    first, second = (answer.headers["location"] for answer in answers)
    assert first == second
    assert first.startswith("/runs/")


def test_a_viewer_sees_the_page_without_the_button(client: Client) -> None:
    assert "/verification/start" in page(client)
    answer = client.as_("viewer").get("/verification", Accept="text/html")
    assert "/verification/start" not in answer.body.decode()
