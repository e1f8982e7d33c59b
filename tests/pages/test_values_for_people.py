"""Values as people say them: sizes, durations, lists, filters, and what a number or an id stands for."""

from playwright.sync_api import expect

from support.page_checks import Visitor
from support.web_client import Served
from tsuzuki.services.runs import Request


def test_settings_have_sizes_days_and_forever(person: Visitor) -> None:
    page = person.open("/settings")
    expect(page.get_by_role("row", name="log_bytes_max_per_run")).to_contain_text("10 MiB")
    expect(page.get_by_role("row", name="log_retention_days_db")).to_contain_text("7 days")
    expect(page.get_by_role("row", name="run_retention_days")).to_contain_text("forever")


def test_the_configuration_has_durations_lists_and_the_jobs_of_now(
    person: Visitor, site: Served
) -> None:
    page = person.open("/settings/configuration")
    expect(page.get_by_role("row", name="commits.overlap")).to_contain_text("30d")
    expect(page.get_by_role("row", name="log_archive")).to_contain_text(".tsuzuki/logs")
    expect(page.get_by_role("row", name="feeds.accounts")).to_contain_text("none")
    in_file = [view for view in site.application.jobs.find() if view.source.value == "file"]
    expect(page.get_by_role("row", name="jobs").get_by_role("link")).to_have_text(str(len(in_file)))


def test_a_list_of_events_counts_their_runs(person: Visitor, site: Served) -> None:
    event, _ = site.application.events.emit("nobody.listens", actor="user:alice")
    page = person.open("/events")
    row = page.locator(f"#event-{event.id}")
    expect(row).to_contain_text("none")
    expect(row.get_by_role("link", name="Runs")).to_have_count(0)


def test_the_audit_log_names_the_job_of_a_run(person: Visitor, site: Served) -> None:
    run_id = site.application.runs.submit(Request(job="needs-gpu"), audited=True).run_id
    page = person.open(f"/audit?object_type=run&object_id={run_id}")
    expect(page.locator("#audit tbody tr").first).to_contain_text(f"needs-gpu {run_id}")


def test_the_filter_of_a_bulk_action_is_in_words(person: Visitor, site: Served) -> None:
    page = person.open("/runs?state=FAILED&exclude_job=hostile&created_from=2026-01-01T00:00:00Z")
    page.get_by_role("button", name="Retry all …").click()
    told = page.locator(".facts .chips").inner_text()
    for words in ("State", "Failed", "Job not", "hostile", "not retried yet", "2026-01-01 00:00"):
        assert words in told
    assert "bulk-actions" not in told
    assert "=" not in told
