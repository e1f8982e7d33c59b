"""Overview, workers, failures, events, audit log in a browser: held to the rules, live, and by dialog."""

import re
from collections.abc import Iterator
from functools import partial
from html import unescape

import pytest
from playwright.sync_api import expect

from support.page_checks import (
    HEIGHT,
    MIDDLE,
    Layouts,
    Visitor,
    check_page,
    check_twin,
    layout_shifts,
)
from support.web_client import Served
from tsuzuki.services.runs import Request

SHOW_TEXT = """(text) => {
  for (const time of document.querySelectorAll('#main time[data-relative], #main time[data-shown]')) {
    time.textContent = text; delete time.dataset.relative; time.dataset.shown = '';
  } }"""


@pytest.fixture(scope="module", autouse=True)
def engine(site: Served) -> Iterator[None]:
    """A leader and a worker in this process, and an event with hostile text."""
    site.application.events.emit("<img src=x onerror=alert(1)>", {"<b>": "\u202e"})
    site.application.local_engine.start()
    yield
    site.application.local_engine.stop()


@pytest.mark.parametrize("path", ["/", "/workers", "/failures", "/events/1", "/audit"])
def test_each_page_of_the_system_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_every_column_of_the_workers_can_be_read_at_a_middle_width(person: Visitor) -> None:
    person.page.set_viewport_size({"width": MIDDLE, "height": HEIGHT})
    check_page(person.visit("/workers"), with_axe=False)


def test_the_overview_changes_in_place(person: Visitor, site: Served) -> None:
    page = person.open("/")
    failures = page.locator("#tiles li", has_text="Failed").locator(".tile-number")
    before = int(failures.inner_text())
    run_id = site.application.runs.submit(Request(job="always-fails")).run_id
    site.application.runs.wait(run_id, timeout_seconds=120)
    expect(failures).to_have_text(str(before + 1))
    moved = layout_shifts(
        page,
        lambda: page.evaluate(
            "() => new Promise((done) => {"
            "document.addEventListener('tsuzuki:refreshed', done, {once: true});"
            "document.dispatchEvent(new Event('visibilitychange')) })"
        ),
    )
    assert moved == []
    failures.click()
    expect(page.locator("#runs tbody tr")).to_have_count(before + 1)


def test_a_failure_group_on_the_overview_shows_the_error_of_its_last_run(site: Served) -> None:
    view = site.client.as_(None).get("/overview.json").json
    group = next(one for one in view["failures"] if "always-fails" in one["job_names"])
    run = site.application.runs.get(group["last_run_id"]).run
    assert view["errors"][str(run.id)] == run.error
    assert run.error in unescape(site.client.as_(None).get("/", Accept="text/html").body.decode())


def test_a_time_that_becomes_longer_moves_nothing(person: Visitor, site: Served) -> None:
    site.application.jobs.create("soon", {"command": ["true"], "schedule": "every 10 minutes"})
    page = person.open("/")
    expect(page.locator("#due time")).not_to_have_count(0)
    for text in ("now", "in 10 s", "11 s ago"):
        moved = layout_shifts(page, partial(page.evaluate, SHOW_TEXT, text))
        assert moved == [], text


def test_each_hour_of_the_chart_leads_to_its_runs(person: Visitor, site: Served) -> None:
    page = person.open("/")
    expect(page.locator("#hours svg a")).to_have_count(24)
    last = page.locator("#hours svg a").last
    assert re.search(r"finished_from=.*&finished_until=", str(last.get_attribute("href")))
    shown = check_twin(person, "/")["hours"][-1]["runs"]
    assert shown["failed"] >= 2


def test_a_group_of_failures_is_acknowledged_in_a_dialog(person: Visitor, site: Served) -> None:
    (group, *_) = site.application.failures.find()
    page = person.open(f"/failures/{group.id}")
    page.get_by_role("link", name="Acknowledge …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text(f"Acknowledge {group.failures} failure")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#flash")).to_have_text("Failures acknowledged.")
    expect(page.locator(f"#group-{group.id}")).to_have_count(0)
    page.get_by_role("link", name="All", exact=True).click()
    expect(page.locator(f"#group-{group.id}")).to_contain_text("Acknowledged")


def test_a_failure_whose_retry_succeeded_is_shown_with_it_and_needs_no_attention(
    person: Visitor, site: Served
) -> None:
    command = ["sh", "-c", "test -e tried || { touch tried; echo 'no route' >&2; exit 1; }"]
    body = {"command": command, "max_retries": 1, "backoff": {"initial": "1s"}}
    site.application.jobs.create("flaky", body)
    first = site.application.runs.submit(Request(job="flaky")).run_id
    site.application.runs.wait(first, timeout_seconds=120)
    retry = site.application.runs.get(first).retried_as
    assert retry is not None
    site.application.runs.wait(retry, timeout_seconds=120)
    page = person.open("/")
    shown = page.locator("#troubled li", has_text="flaky")
    expect(shown).to_contain_text("no route")
    expect(shown.get_by_role("link", name=f"Run {first}", exact=True)).to_be_visible()
    expect(shown.get_by_role("link", name=f"Run {retry}", exact=True)).to_be_visible()
    expect(page.locator("#attention")).not_to_contain_text("flaky")
    group = person.open("/failures").locator("#failures tbody tr", has_text="flaky")
    expect(group).to_contain_text("Recovered")


def test_hostile_text_of_an_event_does_no_harm(person: Visitor) -> None:
    for path in ("/events", "/events/1"):
        page = person.open(path)
        expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>")
        assert page.locator("main img").count() == 0
