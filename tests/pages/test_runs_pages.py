"""Runs and one run: filters in the address, live rows that do not move, cancel, retry, bulk."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from support.page_checks import Layouts, Visitor, check_twin, layout_shifts, visitor
from support.waiting import wait_until
from support.web_client import Served
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Outcome, RunState
from tsuzuki.services.runs import Request

REFRESH = "document.dispatchEvent(new Event('visibilitychange'))"
"""What our script does when a tab is seen again: it asks for the page."""


def new_run(site: Served, job: str = "needs-gpu") -> int:
    return site.application.runs.submit(Request(job=job)).run_id


def run_to_its_end(site: Served, run_id: int) -> None:
    site.application.local_engine.start()
    site.application.runs.wait(run_id, timeout_seconds=120)
    site.application.local_engine.stop()


def refresh(page: Page) -> None:
    """Have our script ask for the page now, and wait until it has."""
    page.evaluate(
        "() => new Promise((done) => {"
        "document.addEventListener('tsuzuki:refreshed', done, {once: true});"
        "document.dispatchEvent(new Event('visibilitychange')) })"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/runs",
        "/runs?state=FAILED&exclude_job=hostile&window=24h",
        "/runs/3",
        "/runs/7",
        "/runs/4/compare?with=1",
    ],
)
def test_each_page_of_runs_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_a_filter_is_a_chip_that_can_be_turned_round_and_removed(person: Visitor) -> None:
    page = person.open("/runs?job=always-fails")
    chip = page.locator(".chip", has_text="always-fails")
    chip.get_by_role("link", name="Exclude instead").click()
    expect(page).to_have_url(re.compile(r"exclude_job=always-fails$"))
    expect(page.locator("#runs")).not_to_contain_text("always-fails")
    page.locator(".chip-excluded").get_by_role("link", name="Remove filter").click()
    expect(page).to_have_url(re.compile(r"/runs$"))
    page.go_back()
    expect(page.locator(".chip-excluded")).to_contain_text("always-fails")


def test_empty_fields_of_the_filter_leave_no_trace_in_the_address(person: Visitor) -> None:
    page = person.open("/runs")
    page.locator(".filters summary").click()
    page.get_by_role("textbox", name="Job").fill("hostile")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"/runs\?job=hostile&window=7d$"))
    expect(page.locator("#runs tbody tr")).to_have_count(1)


def test_an_unknown_job_keeps_the_filter_and_says_what_to_do(person: Visitor) -> None:
    page = person.open("/runs?job=nightly-reprot")
    expect(page.get_by_role("alert")).to_contain_text("nightly-report")
    expect(page.locator(".chip", has_text="nightly-reprot")).to_be_visible()


def test_a_row_changes_in_place_and_a_new_one_waits(person: Visitor, site: Served) -> None:
    run_id = new_run(site)
    page = person.open("/runs")
    expect(page.locator(f"#run-{run_id}")).to_contain_text("Pending")
    site.application.runs.cancel(run_id)
    new_id = new_run(site)
    moved = layout_shifts(page, lambda: refresh(page))
    expect(page.locator(f"#run-{run_id}")).to_contain_text("Canceled")
    expect(page.locator(f"#run-{new_id}")).to_have_count(0)
    assert moved == []
    page.get_by_role("link", name="1 new").click()
    expect(page.locator(f"#run-{new_id}")).to_be_visible()


def test_nothing_changes_while_a_row_is_selected_or_a_dialog_open(
    person: Visitor, site: Served
) -> None:
    run_id = new_run(site)
    page = person.open("/runs")
    page.get_by_label(f"Select run {run_id}").check()
    site.application.runs.cancel(run_id)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#live-mark")).to_have_attribute("data-state", "paused")
    expect(page.locator(f"#run-{run_id}")).to_contain_text("Pending")
    page.get_by_label(f"Select run {run_id}").uncheck()
    expect(page.locator(f"#run-{run_id}")).to_contain_text("Canceled")


def test_a_run_is_canceled_in_a_dialog_and_retried(person: Visitor, site: Served) -> None:
    run_id = new_run(site)
    page = person.open(f"/runs/{run_id}")
    page.get_by_role("link", name="Cancel …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text(f"Cancel run {run_id}?")
    dialog.get_by_role("link", name="Back").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Cancel …").click()
    dialog.get_by_role("button", name=f"Cancel run {run_id}").click()
    expect(page.locator("#flash")).to_have_text(f"Run {run_id} canceled.")
    page.reload()
    expect(page.locator("#flash")).to_have_count(0)
    page.get_by_role("link", name="Retry …").click()
    dialog.get_by_role("button", name=f"Retry run {run_id}").click()
    expect(page.locator("#flash")).to_have_text(f"This run is a retry of run {run_id}.")
    assert site.application.audit.find(limit=2)[0].actor.startswith("web:")


def test_all_of_it_works_without_javascript(chromium: Browser, site: Served) -> None:
    first, second = new_run(site), new_run(site)
    with visitor(chromium, site.client.url, javascript=False) as person:
        page = person.open("/runs")
        for run_id in (first, second):
            page.get_by_label(f"Select run {run_id}").check()
        page.get_by_role("button", name="Cancel …").click()
        expect(page.get_by_role("heading", name="Cancel 2 runs?")).to_be_visible()
        expect(page.locator("code").first).to_have_text(f"tsuzuki run cancel {second} {first}")
        page.get_by_role("button", name="Cancel these runs").click()
        expect(page.locator("#flash")).to_have_text("Runs updated: 2.")
    assert site.application.runs.get(first).run.state is RunState.CANCELED


def test_a_run_that_ended_meanwhile_is_told_and_nothing_is_lost(
    chromium: Browser, site: Served
) -> None:
    run_id = new_run(site)
    with visitor(chromium, site.client.url, javascript=False) as person:
        page = person.open(f"/runs/{run_id}/cancel")
        site.application.runs.cancel(run_id)
        person.faults.clear()
        page.get_by_role("button", name=f"Cancel run {run_id}").click()
        expect(page.get_by_role("alert")).to_contain_text("has already ended")
        person.faults.clear()  # the browser reports the 409


def test_a_bulk_action_keeps_its_frozen_filter(person: Visitor, site: Served) -> None:
    for _ in range(3):
        new_run(site)
    page = person.open("/runs?job=needs-gpu&state=PENDING")
    matched = page.locator("#runs tbody tr").count()
    page.get_by_role("button", name="Cancel all …").click()
    heading = page.get_by_role("heading", name=f"Cancel {matched} runs?")
    expect(heading).to_be_visible()
    address = page.url
    new_run(site, "nightly-report")
    page.reload()
    expect(heading).to_be_visible()
    page.go_back()
    page.go_forward()
    expect(heading).to_be_visible()
    assert page.url == address
    page.get_by_role("button", name=f"Cancel {matched} runs").click()
    expect(page.locator("#flash")).to_contain_text("started")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#flash")).to_contain_text("stopped")


def test_what_comes_from_outside_does_no_harm(person: Visitor) -> None:
    page = person.open("/runs/4")
    expect(page.locator("#L1")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("#L1")).to_contain_text("\\u202e{{7*7}}")
    expect(page.locator(".ansi-red")).to_have_text("red")
    assert page.locator("img").count() == 0
    assert check_twin(person, "/runs/4")["run"]["state"] == "FAILED"


def test_secrets_are_masked_on_the_page_and_in_its_twin(person: Visitor) -> None:
    page = person.open("/runs/1")
    assert "hunter2-secret" not in page.content()
    expect(page.locator("pre.code").first).to_contain_text('"password": "***"')
    assert check_twin(person, "/runs/1")["run"]["arguments"]["password"] == "***"


def test_the_log_is_searched_and_each_line_has_an_address(person: Visitor) -> None:
    page = person.open("/runs/4?search=RED")
    expect(page.locator(".log-lines li")).to_have_count(1)
    page.locator(".log-lines a").click()
    expect(page).to_have_url(re.compile(r"/runs/4\?line=2#L2$"))
    expect(page.locator(".log-lines li")).to_have_count(2)


def test_keys_move_open_and_jump(person: Visitor) -> None:
    page = person.open("/runs")
    first = page.locator("#runs tbody tr").first.get_attribute("data-href")
    page.keyboard.press("j")
    expect(page.locator("tr[data-focus]")).to_have_attribute("data-href", str(first))
    page.keyboard.press("x")
    expect(page.locator("[data-selected]")).to_have_text("1")
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{first}$"))
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(r"/runs$"))
    page.keyboard.press("/")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/runs/3$"))
    page.keyboard.press("Control+k")
    page.keyboard.type("bulk")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/bulk$"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_a_run_is_compared_with_the_last_good_one(person: Visitor) -> None:
    page = person.open("/runs/2")
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("row", name=re.compile("^Run"))).to_have_text(re.compile(r"2\s*1"))
    expect(page.get_by_role("row", name=re.compile("^Input month"))).to_contain_text("11")
    expect(page.locator("main")).to_contain_text("The logs are identical except for numbers.")


def test_the_attempts_of_a_run_are_listed(person: Visitor, site: Served) -> None:
    retry_id = site.application.runs.retry(3).run_id
    page = person.open(f"/runs/{retry_id}")
    expect(page.locator("#attempts tbody tr")).to_have_count(2)
    site.application.runs.cancel(retry_id)


def test_the_page_of_a_run_names_its_job_and_who_started_it(person: Visitor, site: Served) -> None:
    asked = site.application.acting_as("user:alice").runs.submit(
        Request(job="needs-gpu"), audited=True
    )
    page = person.open(f"/runs/{asked.run_id}")
    expect(page).to_have_title(re.compile(rf"^needs-gpu · Run {asked.run_id} · "))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(f"needs-gpu Run {asked.run_id}")
    expect(page.locator("#facts")).to_contain_text("user:alice")


def test_the_page_of_a_failed_run_leads_to_the_failures_of_its_cause(person: Visitor) -> None:
    page = person.open("/runs/3")
    page.get_by_role("link", name="All failures with this cause").click()
    expect(page.locator("#runs")).to_contain_text("always-fails")


def test_the_lines_of_an_error_are_lines(person: Visitor, site: Served) -> None:
    site.application.jobs.create(
        "two-lines", {"command": ["sh", "-c", "printf 'first\\nsecond\\n' >&2; exit 1"]}
    )
    run_id = new_run(site, "two-lines")
    run_to_its_end(site, run_id)
    page = person.open(f"/runs/{run_id}")
    told = page.get_by_role("alert").inner_text()
    assert "\\n" not in told
    assert len(told.splitlines()) > 1


def test_any_two_runs_of_a_list_are_compared(person: Visitor) -> None:
    page = person.open("/runs?job=nightly-report&state=SUCCEEDED&window=all")
    bar = page.locator("[data-selection]")
    expect(bar).to_be_hidden()
    page.get_by_label("Select run 1", exact=True).check()
    expect(bar.get_by_role("button", name="Compare")).to_be_disabled()
    page.get_by_label("Select run 2", exact=True).check()
    bar.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("row", name=re.compile("^Run"))).to_have_text(re.compile(r"2\s*1"))
    page.get_by_label("Compare with run").fill("3")
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile(r"/runs/2/compare\?with=3$"))
    expect(page.get_by_role("row", name=re.compile("^State"))).to_contain_text("Failed")


def test_all_runs_are_acted_on_only_below_a_filter(person: Visitor) -> None:
    page = person.open("/runs")
    expect(page.get_by_role("button", name="Retry all …")).to_have_count(0)
    page = person.open("/runs?state=FAILED")
    expect(page.get_by_role("button", name="Retry all …")).to_be_visible()


def test_the_filter_button_stays_where_it_is(person: Visitor) -> None:
    page = person.open("/runs?job=needs-gpu")
    button = page.locator(".filters summary")
    closed = button.bounding_box()
    button.click()
    assert button.bounding_box() == closed
    inputs = page.locator(".filter-form input:visible, .filter-form select:visible").all()
    tops = {round(box["y"]) for one in inputs if (box := one.bounding_box())}
    assert max(tops) - min(tops) == 0 or len(tops) < len(inputs)


def test_a_skipped_run_names_the_run_that_was_in_its_way(person: Visitor, site: Served) -> None:
    jobs, runs = site.application.jobs, site.application.runs
    jobs.create("too-often", {"command": ["sleep", "60"], "schedule": {"every": "1s"}})
    skipped = RunFilter(job_name="too-often", outcomes=frozenset({Outcome.SKIPPED}), limit=1)
    site.application.local_engine.start()
    wait_until(lambda: bool(runs.find(skipped)), "a tick was skipped")
    jobs.set_enabled("too-often", False)
    site.application.local_engine.stop()
    run = runs.find(skipped)[0]
    page = person.open("/runs?outcome=skipped")
    row = page.locator(f"#run-{run.id}")
    expect(row).to_contain_text("Skipped")
    expect(row.get_by_role("link", name=f"Run {run.blocked_by}")).to_be_visible()
    row.get_by_role("link", name=str(run.id), exact=True).click()
    expect(page.locator("h1")).to_contain_text("Skipped")
    expect(page.locator("#log")).to_be_hidden()
    page.locator("#skipped").get_by_role("link", name=f"Run {run.blocked_by}").click()
    expect(page).to_have_url(re.compile(rf"/runs/{run.blocked_by}$"))


def test_runs_are_listed_between_two_times_on_the_clock_of_the_reader(
    chromium: Browser, site: Served
) -> None:
    with visitor(chromium, site.client.url, zone="Asia/Tokyo") as person:
        page = person.open("/runs")
        page.locator(".filters summary").click()
        page.get_by_label("From", exact=True).fill("2026-01-02T03:00")
        page.get_by_label("Until", exact=True).fill("2026-01-02T04:00")
        page.get_by_role("button", name="Apply").click()
        expect(page).to_have_url(re.compile(r"created_from=2026-01-01T18%3A00%3A00"))
        expect(page.locator(".chips")).to_contain_text("2026-01-02 03:00:00 JST")
        expect(page.locator(".empty")).to_contain_text("No matching runs")
        page.locator(".filters summary").click()
        expect(page.get_by_label("Until", exact=True)).to_have_value("2026-01-02T04:00")
        twin = check_twin(person, "/runs?since=2026-01-02T03:00")
        assert twin["filters"]["created_from"].startswith("2026-01-01T18:00:00")


def test_a_waiting_run_says_why_in_the_list(person: Visitor, site: Served) -> None:
    run_id = new_run(site)
    row = person.open("/runs").locator(f"#run-{run_id} .c-happened")
    expect(row).not_to_contain_text("manual")
    expect(row.locator("[title]")).to_have_attribute("title", re.compile(r"\w+ \w+"))
