"""Commits: targets with their heads, the plan of a collection, results, retry and cancel, and the monthly chart."""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.collect_site import BRANCH, collect_site
from support.page_checks import Layouts, Visitor, check_twin, visitor
from support.page_site import HOSTILE
from support.web_client import Served, served_application
from tsuzuki.collectors.commits.service import CommitsService
from tsuzuki.web.pages.route import FORM_TYPE


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with collect_site(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.fixture
def service(site: Served) -> CommitsService:
    found: CommitsService = site.application.service("commits")
    return found


@pytest.mark.parametrize(
    "path", ["/commits", "/commits/chart", "/commits/collect", "/commits/projects"]
)
def test_each_page_of_commits_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_a_collection_is_held_to_the_rules_and_names_what_failed(
    layouts: Layouts, site: Served, service: CommitsService
) -> None:
    newest = service.collections.summaries()[-1].collection_id
    layouts.check(f"/commits/collections/{newest}")
    failed = site.client.as_(None).get(f"/commits/collections/{newest}.json?status=failed").json
    (result,) = failed["results"]
    assert (result["status"], failed["collection"]["failed_count"]) == ("failed", 1)
    assert "site.git" in result["error_message"]


def test_the_plan_compares_each_target_with_its_source(person: Visitor) -> None:
    plan = check_twin(person, "/commits/collect")
    by_branch = {(t["project"].rpartition("/")[2], t["branch"]): t for t in plan["targets"]}
    same = by_branch["engine.git", "main"]
    assert (same["outcome"], same["stored"]) == ("same", same["remote"])
    assert by_branch["site.git", "main"]["outcome"] == "failed"
    assert by_branch["engine.git", BRANCH]["outcome"] == "absent"
    assert plan["counts"] == {"same": 1, "failed": 1, "absent": 1}


def test_the_heads_of_the_sources_are_asked_for_the_targets_of_the_page(person: Visitor) -> None:
    found = check_twin(person, "/commits/heads")["targets"]
    assert {
        (one["project"].rpartition("/")[2], one["branch"]): one["outcome"] for one in found
    } == {
        ("engine.git", "main"): "same",
        ("engine.git", BRANCH): "absent",
        ("site.git", "main"): "failed",
    }
    page = person.open("/commits?search=engine.git")
    page.get_by_role("link", name="Check for updates").click()
    expect(page.locator("main tbody tr")).to_have_count(2)
    expect(page.locator("main tbody tr").nth(1)).to_contain_text("Up to date")


def test_the_run_of_a_collection_leads_to_it(site: Served) -> None:
    client = site.client.as_(None)
    (link,) = client.get("/runs/1.json").json["effects"]["links"]
    newest = client.get("/commits.json").json["last"]["collection_id"]
    assert link["path"] == f"/commits/collections/{newest}"
    assert f'href="{link["path"]}"' in client.get("/runs/1").body.decode()


def test_all_is_continued_canceled_and_retried(
    person: Visitor, site: Served, service: CommitsService
) -> None:
    page = person.open("/commits")
    page.get_by_role("link", name="Collect all …").click()
    page.get_by_role("button", name="Collect 3 targets").click()
    expect(page.locator("#flash")).to_have_text("Collection started. Targets: 3.")
    expect(page.locator("main")).to_contain_text("No engine is running")
    page.get_by_role("link", name="Cancel …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text("3 unprocessed targets stay pending.")
    dialog.get_by_role("button", name="Cancel collection").click()
    expect(page.locator("#flash")).to_contain_text("canceled")
    page.get_by_role("link", name="Retry failed …").click()
    dialog.get_by_role("button", name="Retry 3 targets").click()
    expect(page.locator("#flash")).to_have_text("Collection started. Targets: 3.")
    assert site.application.audit.find(limit=1)[0].actor.startswith("web:")
    person.faults.clear()
    page = person.open("/commits/collect")
    expect(page.locator("main")).to_contain_text("A collection is in progress")
    expect(page.get_by_role("button", name="Collect")).to_have_count(0)
    service.collections.cancel()


def test_some_projects_are_continued_alone(
    person: Visitor, site: Served, service: CommitsService
) -> None:
    page = person.open("/commits/projects")
    row = page.locator("#projects tbody tr", has_text="site.git")
    button = page.get_by_role("button", name="Collect selected …")
    expect(button).to_be_hidden()
    row.get_by_role("checkbox").check()
    button.click()
    expect(page.locator("#heads tbody tr")).to_have_count(1)
    (site_id,) = [
        view.project.project_id
        for view in service.commits.projects()
        if view.project.path.endswith("site.git")
    ]
    command = page.locator(".equivalent code").first
    expect(command).to_have_text(f"tsuzuki commits collect {site_id}")
    page.get_by_role("button", name="Collect 1 target").click()
    expect(page.locator("#flash")).to_have_text("Collection started. Targets: 1.")
    (started, *_) = service.collections.summaries(limit=1)
    (result,) = service.collections.show(started.collection_id).results
    service.collections.cancel()
    assert (result.project_id, result.branch_name) == (site_id, "main")
    plan = check_twin(person, f"/commits/collect?project={site_id}&branch=none")
    assert (plan["targets"], plan["filters"]["branch"]) == ([], "none")
    assert person.context.request.get(f"{person.url}/commits/collect?project=no/such").status == 404


def test_projects_are_counted_with_what_is_followed_and_stored(site: Served) -> None:
    client = site.client.as_(None)
    rows = client.get("/commits/projects.json").json["projects"]
    assert {row["path"].rpartition("/")[2]: row["targets"] for row in rows} == {
        "engine.git": 2,
        "site.git": 1,
    }
    known = client.get("commits/projects").json["items"]
    assert {row["project_id"]: row["commits"] for row in rows} == {
        one["project_id"]: one["commits"] for one in known
    }
    found = client.get("/commits/projects.json?search=ENGINE").json
    assert [row["path"].rpartition("/")[2] for row in found["projects"]] == ["engine.git"]
    headers = {"Content-Type": FORM_TYPE, "Origin": site.client.url}
    refused = client.request("POST", "/commits/projects/sync", raw=b"", headers=headers)
    assert (refused.status, b"Sync projects" in refused.body) == (503, True)


def test_a_branch_is_followed_and_no_longer_without_javascript(
    chromium: Browser, site: Served, service: CommitsService
) -> None:
    with visitor(chromium, site.client.url, javascript=False) as person:
        page = person.open("/commits/targets/add")
        page.get_by_role("combobox", name="Project").fill("no/such")
        page.get_by_role("textbox", name="Branch").fill("main")
        page.get_by_role("button", name="Follow").click()
        expect(page.get_by_role("alert")).to_contain_text("unknown project")
        expect(page.get_by_role("textbox", name="Branch")).to_have_value("main")
        person.faults.clear()  # the browser reports the 404
        (target, *_) = service.commits.targets()
        service.commits.remove_target(str(target.project_id), "main")
        page.get_by_role("combobox", name="Project").fill(target.project)
        page.get_by_role("button", name="Follow").click()
        expect(page.locator("#flash")).to_contain_text("Now following")
        row = page.locator("#targets tbody tr", has_text=BRANCH)
        row.get_by_role("link", name="Unfollow").click()
        expect(page.locator("main")).to_contain_text(BRANCH)
        page.get_by_role("button", name="Stop following").click()
        expect(page.locator("#flash")).to_contain_text("No longer following")
    assert BRANCH not in [one.branch for one in service.commits.targets()]
    (entry,) = site.application.audit.find(limit=1)
    assert entry.action == "commits.target.remove"


def test_the_chart_is_narrowed_by_links_and_what_counts_stands_in_the_address(
    person: Visitor,
) -> None:
    page = person.open("/commits/chart")
    page.get_by_role("link", name="as recorded").click()
    expect(page).to_have_url(re.compile(r"identities=written"))
    page.get_by_text("View as table", exact=True).click()
    page.locator(".twin").get_by_role("link", name="2026-12").click()
    expect(page).to_have_url(re.compile(r"since=2026-12-01&until=2026-12-31"))
    expect(page.locator(".chip", has_text="2026-12-31")).to_be_visible()
    page.locator(".chip", has_text="From").get_by_role("link", name="Remove filter").click()
    expect(page).not_to_have_url(re.compile("since="))


def test_the_chart_shows_hostile_authors_without_harm(person: Visitor, site: Served) -> None:
    page = person.open("/commits/chart")
    expect(page.locator("svg.bars title", has_text="onerror=alert(1)").first).to_be_attached()
    assert page.locator("main img").count() == 0
    names = {one["name"] for one in check_twin(person, "/commits/chart")["authors"]}
    assert HOSTILE in names
    table = site.client.as_(None).get("commits/chart/csv?months=24&top=10").body.decode()
    (head, *rows) = csv.reader(StringIO(table))
    assert len(rows) == 24
    assert any("onerror" in name for name in head)


def test_a_filter_that_finds_nothing_is_kept_and_told(person: Visitor) -> None:
    page = person.open("/commits/chart?author=Ada+Lovelac")
    expect(page.get_by_role("alert")).to_contain_text("Ada Lovelace")
    expect(page.locator(".chip", has_text="Ada Lovelac")).to_be_visible()
    page = person.open("/commits?search=nothing-of-this-name")
    expect(page.locator("main")).to_contain_text("No matching targets")


def test_those_without_the_right_see_no_action(tmp_path: Path) -> None:
    with served_application(tmp_path) as served:
        for path in ("/commits", "/commits/collections"):
            assert b'/commits/collect"' in served.client.as_("operator").get(path).body
            assert b'/commits/collect"' not in served.client.as_("viewer").get(path).body
