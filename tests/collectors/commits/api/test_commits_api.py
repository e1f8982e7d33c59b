"""Commits over HTTP: targets, collections that the engine carries out, statistics, and the export as a file."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from support.git_histories import straight
from support.web_client import Client, Served, served_application
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.sandbox.server import StandIn

COUNT = 7


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("histories") / "straight.git"
    straight(folder, COUNT)
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Served]:
    """With a project that was taken in on the server itself."""
    folder = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        commits = served.application.service("commits").commits
        commits.add_repository(str(repository), base=folder)
        yield served


@pytest.fixture(scope="module")
def project(served: Served, repository: Path) -> str:
    (found,) = served.client.get("commits/projects").json["items"]
    assert found["path"] == str(repository)
    return str(found["project_id"])


@pytest.fixture(scope="module")
def collected(served: Served, project: str) -> list[str]:
    """The ids of one collection that has completed and one that was cancelled before."""
    client = served.client
    added = client.post("commits/targets", {"project": project, "branch": "main"})
    assert (added.status, added.json["head"]) == (201, None)
    cancelled = client.post("commits/collections", {"projects": [project]})
    assert (cancelled.status, cancelled.json["total_targets"]) == (202, 1)
    assert client.post("commits/collections").code == "already_running"
    place = cancelled.headers["location"]
    assert client.post(f"{place}/cancel").json["run_status"] == "cancelled"
    started = client.post(f"{place}/retry")
    assert started.status == 202, started.body
    served.application.local_engine.start()
    run = client.get(f"runs/{started.json['job_run_id']}/wait?seconds=60").json["run"]
    assert run["state"] == "SUCCEEDED"
    return [started.json["collection_id"], cancelled.json["collection_id"]]


def test_collections_are_listed_and_shown_with_their_results(
    client: Client, collected: list[str]
) -> None:
    page = client.get("commits/collections?limit=1&count=true").json
    rest = client.get(f"commits/collections?limit=1&cursor={page['next_cursor']}").json
    assert [one["collection_id"] for one in page["items"] + rest["items"]] == collected
    assert (page["count"]["value"], rest["next_cursor"]) == (2, None)
    shown = client.get(f"commits/collections/{collected[0][:8]}").json
    assert (shown["run_status"], shown["retry_of"]) == ("completed", collected[1])
    (result,) = shown["results"]
    assert (result["status"], result["new_commits_count"]) == ("success", COUNT)
    assert client.get("commits/collections/no-such").code == "collection_unknown"
    assert client.post(f"commits/collections/{collected[0]}/cancel").code == "not_running"
    assert client.post(f"commits/collections/{collected[0]}/retry").code == "nothing_failed"


@pytest.mark.usefixtures("collected")
def test_commits_are_counted_as_it_is_asked(client: Client, project: str) -> None:
    found = client.get("commits/stats?by=month&by=author&sort=commits&top=1").json
    assert (len(found["rows"]), found["total"]["commits"]) == (1, COUNT)
    assert {"month", "author_name", "commits", "additions"} <= found["rows"][0].keys()
    narrowed = client.get(f"commits/stats?by=project&project={project}&branch=none").json
    assert (narrowed["rows"], narrowed["total"]["commits"]) == ([], 0)


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("by=month&by=month", 422, "invalid_value"),
        ("by=moth", 422, "invalid_value"),
        ("sort=month:down", 422, "sort_unknown"),
        ("since=2026-02-01&until=2026-01-01", 422, "days_reversed"),
        ("project=no-such", 404, "project_unknown"),
        ("author=Ad", 404, "author_unknown"),
        ("team=none", 404, "team_unknown"),
        ("authors=Ad", 422, "unknown_parameter"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    client: Client, query: str, status: int, code: str
) -> None:
    answer = client.get(f"commits/stats?{query}")
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.usefixtures("collected")
def test_the_chart_is_a_table_for_a_spreadsheet(client: Client) -> None:
    chart = client.get("commits/chart").json
    answer = client.get("commits/chart/csv?identities=written")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    (names, *rows) = csv.reader(StringIO(answer.body.decode()))
    assert names == ["month", *(series["author"] for series in chart["series"])]
    assert [row[0] for row in rows] == chart["months"]
    assert sum(int(cell) for row in rows for cell in row[1:]) == COUNT


@pytest.mark.usefixtures("collected")
def test_the_export_is_a_file_with_every_commit(client: Client) -> None:
    exported = client.get("commits/export")
    assert exported.headers["content-disposition"] == 'attachment; filename="commits.csv"'
    assert int(exported.headers["content-length"]) == len(exported.body)
    rows = list(csv.DictReader(StringIO(exported.body.decode())))
    lines = client.get("commits/export?format=jsonl").body.decode().splitlines()
    assert [row["sha"] for row in rows] == [json.loads(line)["sha"] for line in lines]
    assert len({row["sha"] for row in rows}) == COUNT
    assert client.get("commits/export?project=no-such").code == "project_unknown"


@pytest.mark.usefixtures("collected")
def test_a_target_is_removed_by_project_and_branch(client: Client, project: str) -> None:
    (target,) = client.get("commits/targets").json["items"]
    assert (target["branch"], target["under_way"]) == ("main", False)
    assert client.delete(f"commits/targets?project={project}&branch=mian").status == 404
    assert client.delete(f"commits/targets?project={project}&branch=main").status == 204
    assert client.get("commits/targets").json["items"] == []
    again = client.post("commits/targets", {"project": project})
    assert (again.status, again.json["branch"]) == (201, "main")
    assert again.json["why_default"]


@pytest.mark.parametrize("reference", [".", "..", "https://example.org/x.git", "host:x"])
def test_a_folder_or_url_of_the_server_is_not_taken_in(client: Client, reference: str) -> None:
    before = client.get("commits/projects").body
    answer = client.post("commits/targets", {"project": reference})
    assert (answer.status, answer.code) == (404, "project_unknown")
    assert client.get("commits/projects").body == before


@pytest.mark.usefixtures("collected")
def test_a_chart_has_the_commits_of_each_month_and_author(client: Client) -> None:
    chart = client.get("commits/chart?months=600&top=1").json
    assert sum(sum(one["commits"]) for one in chart["series"]) == COUNT
    assert {len(one["commits"]) for one in chart["series"]} == {len(chart["months"])}


def test_a_gitlab_that_does_not_answer_is_told(client: Client) -> None:
    answer = client.post("commits/projects/sync")
    assert (answer.status, answer.code) == (503, "source_unwell")


def test_projects_of_the_gitlab_are_learnt_and_their_branches_followed(tmp_path: Path) -> None:
    straight(tmp_path / "served" / "group" / "one.git", 2)
    (tmp_path / "workspace").mkdir()
    with StandIn(gitlab(tmp_path / "served")) as server:
        environ = {
            "TSUZUKI_COMMITS_GITLAB_URL": server.url,
            "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN,
        }
        with served_application(tmp_path / "workspace", environ=environ) as served:
            client = served.client
            synced = client.post("commits/projects/sync").json
            assert synced == {"known": 1, "added": ["group/one"], "renamed": 0, "default_moved": 0}
            assert client.post("commits/projects/sync").json["added"] == []
            for dry_run, outcome in ((True, "would_add"), (False, "added"), (False, "present")):
                body = {"patterns": ["ma*"], "dry_run": dry_run}
                (one,) = client.post("commits/targets/matching", body).json["items"]
                assert (one["branch"], one["outcome"]) == ("main", outcome)
            folder = client.post("commits/targets/matching", {"project": str(tmp_path)})
            # Looked up on GitLab, not among the files of this machine.
            assert folder.code == "project_unknown"
