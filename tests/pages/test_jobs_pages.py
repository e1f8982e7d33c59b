"""Jobs and one job: what is shown, run now, switched on and off, made, edited against a version, deleted."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from support.page_checks import Layouts, Visitor, check_page
from support.page_site import HOSTILE
from support.web_client import Client, HttpAnswer, Served, served_application
from tsuzuki.web.pages.route import FORM_TYPE

SECRET = "hunter2-secret"
FILE = "jobs:\n  in-the-file:\n    command: [echo, hello]\n    schedule: every 10m\n"
MADE = {
    "command": ["echo", "hello"],
    "schedule": {"weekly": {"days": ["monday", "friday"], "at": "07:00"}, "timezone": "Asia/Tokyo"},
    "description": f"Says hello {HOSTILE}",
    "environment": {"API_TOKEN": SECRET},
    "tags": ["greeting"],
}


@pytest.fixture(scope="module")
def made(site: Served) -> str:
    site.application.jobs.create("made-here", MADE)
    return "made-here"


@pytest.mark.parametrize(
    "path",
    [
        "/jobs?window=7d&sort=next",
        "/jobs/nightly-report",
        "/jobs/made-here",
        "/jobs/made-here/edit",
        "/jobs/nightly-report/schedule",
    ],
)
def test_each_page_of_jobs_is_held_to_the_rules(layouts: Layouts, made: str, path: str) -> None:
    layouts.check(path)


def test_a_job_is_run_switched_off_and_deleted_in_dialogs(person: Visitor, site: Served) -> None:
    site.application.jobs.create("short-lived", MADE)
    page = person.open("/jobs/short-lived")
    dialog = page.get_by_role("dialog", name="Confirm")
    page.get_by_role("link", name="Run now …").click()
    dialog.get_by_role("textbox", name="Arguments").fill("month: 11")
    check_page(page)
    dialog.get_by_role("button", name="Run now").click()
    expect(page.locator("#flash")).to_contain_text("started")
    run_id = int(page.url.rpartition("/")[2])
    assert site.application.runs.get(run_id).run.arguments == {"month": 11}
    page.get_by_role("link", name="short-lived").first.click()
    page.get_by_role("link", name="Disable …").click()
    expect(dialog).to_contain_text("1 run has not finished yet.")
    dialog.get_by_role("button", name="Disable short-lived").click()
    expect(page.locator("#flash")).to_have_text("Job short-lived disabled.")
    expect(page.locator("h1")).to_contain_text("Disabled")
    page.get_by_role("link", name="Delete …").click()
    dialog.get_by_role("button", name="Delete short-lived").click()
    expect(page).to_have_url(re.compile(r"/jobs$"))
    expect(page.locator("#jobs")).not_to_contain_text("short-lived")
    actions = [entry.action for entry in site.application.audit.find(object_id="short-lived")]
    assert actions == ["job.remove", "job.change", "job.add"]


def test_every_number_of_the_list_is_a_link_to_what_it_counts(person: Visitor, made: str) -> None:
    page = person.open("/jobs?search=always")
    row = page.locator("#job-always-fails")
    expect(row.locator(".strip a")).to_have_count(1)
    row.get_by_role("link", name="Failed").last.click()
    expect(page.locator("#runs tbody tr")).to_have_count(1)


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With a person of each role, and a job in the file and in the database."""
    folder = tmp_path_factory.mktemp("roles")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    with served_application(folder) as served:
        served.application.jobs.apply()
        served.application.jobs.create("made-here", MADE)
        yield served


def send(client: Client, path: str, **fields: object) -> HttpAnswer:
    raw = urlencode(fields).encode()
    return client.request("POST", path, raw=raw, headers={"Content-Type": FORM_TYPE})


def test_a_button_is_there_for_those_who_may(fixed: Served) -> None:
    buttons = ("run", "disable", "edit", "delete")
    seen = {
        role: [
            name
            for name in buttons
            if f'"/jobs/made-here/{name}"'
            in fixed.client.as_(role).get("/jobs/made-here").body.decode()
        ]
        for role in ("viewer", "operator", "admin")
    }
    assert seen == {"viewer": [], "operator": ["run", "disable"], "admin": list(buttons)}
    assert b"Change history" not in fixed.client.as_("viewer").get("/jobs/made-here").body


def test_a_job_of_the_file_says_where_it_stands_and_is_not_edited_here(fixed: Served) -> None:
    page = fixed.client.get("/jobs/in-the-file").body.decode()
    assert "tsuzuki.yaml:2:3" in page
    assert '"/jobs/in-the-file/edit"' not in page
    definition = json.dumps({"command": ["true"]})
    refused = send(fixed.client, "/jobs/in-the-file/edit", definition=definition, version=1)
    assert refused.status == 409
    assert b"is defined in the file" in refused.body
    assert send(fixed.client, "/jobs/in-the-file/delete", version=1).status == 409


def test_a_secret_is_masked_and_kept_by_an_edit(fixed: Served) -> None:
    jobs = fixed.application.jobs
    jobs.create("with-secret", MADE)
    for path in ("/jobs/with-secret", "/jobs/with-secret.json", "/jobs/with-secret/edit.json"):
        assert SECRET.encode() not in fixed.client.get(path).body
    form = fixed.client.get("/jobs/with-secret/edit.json").json
    text = form["definition"] + "\npriority: 7"
    answer = send(fixed.client, "/jobs/with-secret/edit", definition=text, version=form["version"])
    assert (answer.status, answer.headers["location"]) == (303, "/jobs/with-secret")
    spec = jobs.get("with-secret").spec
    assert (spec.priority, spec.options["environment"]) == (7, {"API_TOKEN": SECRET})
    page = fixed.client.get("/jobs/with-secret").body.decode()
    assert "<code>priority</code>" in page
    assert SECRET not in page


def test_an_edit_of_an_older_version_shows_what_differs_and_keeps_the_text(fixed: Served) -> None:
    jobs = fixed.application.jobs
    jobs.create("raced", {"command": ["true"]})
    form = fixed.client.get("/jobs/raced/edit.json").json
    jobs.edit("raced", {"command": ["true"], "priority": 3}, version=None)
    mine = "command: ['true']\npriority: 9"
    stale = send(fixed.client, "/jobs/raced/edit", definition=mine, version=form["version"])
    assert stale.status == 412
    page = stale.body.decode()
    assert "priority: 9" in page
    assert re.search(r"<code>3</code>.*<code>9</code>", page)
    now = re.search(r'name="version" value="(\d+)"', page)
    assert now
    assert send(fixed.client, "/jobs/raced/edit", definition=mine, version=now[1]).status == 303
    assert jobs.get("raced").spec.priority == 9


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ("comand: [echo]", "comand"),
        ("command: [echo]\nschedule: every 10 minuets", "schedule"),
        ("command: [echo\n", "definition:"),
        ("- a list", "not a mapping"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_that_was_typed_is_lost(
    fixed: Served, definition: str, told: str
) -> None:
    answer = send(fixed.client, "/jobs/-/new", name="typed", definition=definition)
    page = answer.body.decode()
    assert answer.status == 422, page[-500:]
    assert 'role="alert"' in page
    assert told in page
    assert 'value="typed"' in page
    assert definition.splitlines()[0] in page


def test_a_preview_shows_the_next_times_and_stores_nothing(fixed: Served) -> None:
    text = "command: [echo, hello]\nschedule: {daily_at: '07:00', timezone: Asia/Tokyo}"
    shown = send(fixed.client, "/jobs/-/new", name="later", definition=text, button="preview")
    assert shown.status == 200
    assert shown.body.count(b"22:00:00 UTC") >= 5
    assert fixed.client.get("/jobs/later").status == 404
    made = send(fixed.client, "/jobs/-/new", name="later", definition=text)
    assert made.headers["location"] == "/jobs/later"
    assert send(fixed.client, "/jobs/-/new", name="later", definition=text).status == 409


def test_a_form_that_is_sent_twice_starts_one_run(fixed: Served) -> None:
    once = fixed.client.get("/jobs/made-here/run.json").json["form"]["once"]
    sent = [
        send(fixed.client, "/jobs/made-here/run", arguments="", once=once, delay_seconds=0)
        for _ in range(2)
    ]
    assert [answer.status for answer in sent] == [303, 303]
    assert sent[0].headers["location"] == sent[1].headers["location"]
    wrong = send(fixed.client, "/jobs/made-here/run", arguments="{month: ", once=once)
    assert wrong.status == 422
    assert b"{month: " in wrong.body


def test_a_form_that_is_sent_again_with_other_arguments_asks_before_it_starts_a_second_run(
    fixed: Served,
) -> None:
    once = fixed.client.get("/jobs/made-here/run.json").json["form"]["once"]
    first = send(fixed.client, "/jobs/made-here/run", arguments="", once=once)
    other = send(fixed.client, "/jobs/made-here/run", arguments="{n: 1}", once=once)
    assert other.status == 409
    (asked,) = re.findall(rb'name="once" value="([^"]+)"', other.body)
    assert asked.decode() != once
    second = send(fixed.client, "/jobs/made-here/run", arguments="{n: 1}", once=asked.decode())
    assert second.status == 303
    assert second.headers["location"] != first.headers["location"]


def test_a_list_without_jobs_teaches_the_next_command(fixed: Served) -> None:
    assert b"Show all jobs" in fixed.client.get("/jobs?search=nothing-has-this").body
    on = fixed.client.get("/jobs.json?enabled=true&sort=next&limit=1").json
    assert on["switched_on"] == on["count"]["value"]
    second = fixed.client.get(
        f"/jobs.json?enabled=true&sort=next&limit=1&cursor={on['next_cursor']}"
    )
    assert second.json["jobs"][0]["job"]["name"] != on["jobs"][0]["job"]["name"]


def test_the_file_is_applied_after_a_look_at_what_changes(fixed: Served) -> None:
    client = fixed.client
    file = fixed.application.configuration.file
    assert file
    before = file.read_text(encoding="utf-8")
    assert client.get("/jobs/-/apply.json").json["changes"] == []
    try:
        file.write_text(f"{before}  extra:\n    command: ['true']\n", encoding="utf-8")
        assert client.get("/jobs/-/apply.json").json["changes"] == [
            {"kind": "add", "name": "extra", "keys": []}
        ]
        assert "Apply 1 change from the file?" in client.get("/jobs/-/apply").body.decode()
        assert send(client, "/jobs/-/apply").status == 303
        assert client.get("/jobs/extra.json").json["job"]["sync_state"] == "applied"
        file.write_text("jobs: [", encoding="utf-8")
        assert client.get("/jobs/-/apply.json").json["problem"]["code"]
        assert send(client, "/jobs/-/apply").status == 503
    finally:
        file.write_text(before, encoding="utf-8")
    assert send(client, "/jobs/-/apply").status == 303


def test_the_schedule_of_a_job_in_the_file_is_changed_there_and_comments_stay(
    person: Visitor, site: Served
) -> None:
    file = site.application.jobs.require_file()
    file.write_text(
        file.read_text().replace("schedule: every 1h", "schedule: every 1h  # not less")
    )
    page = person.open("/jobs/nightly-report")
    page.get_by_role("link", name="Change schedule …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    field = dialog.get_by_role("textbox", name="Schedule")
    expect(field).to_have_value("every 1h")
    check_page(page)
    field.fill("daily at 02:30")
    dialog.get_by_role("button", name="Preview").click()
    expect(page.locator(".next-times li")).to_have_count(5)
    assert "every 1h" in file.read_text()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#job-next")).to_contain_text("02:30")
    assert 'schedule: "daily at 02:30"  # not less' in file.read_text()


def test_a_schedule_that_another_person_changed_is_not_overwritten(
    person: Visitor, site: Served
) -> None:
    page = person.open("/jobs/nightly-report/schedule")
    site.application.jobs.update("nightly-report", {"schedule": "every 2h"})
    page.get_by_role("textbox", name="Schedule").fill("every 3h")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert "every 2h" in site.application.jobs.require_file().read_text()
    expect(page.get_by_role("textbox", name="Schedule")).to_have_value("every 3h")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#job-next")).to_contain_text("every 3 hours")
    person.faults.clear()  # the browser reports the 412


def test_a_schedule_that_cannot_be_read_is_refused_with_what_was_typed(person: Visitor) -> None:
    page = person.open("/jobs/nightly-report/schedule")
    page.get_by_role("textbox", name="Schedule").fill("every blue moon")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("textbox", name="Schedule")).to_have_value("every blue moon")
    person.faults.clear()  # the browser reports the refusal
