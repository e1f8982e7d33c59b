"""Live pages: a run that is watched, many tabs, a connection that breaks, and a person who is typing."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from support.page_checks import Visitor, visitor
from support.page_site import page_site
from support.web_client import Served
from tsuzuki.services.runs import Request

LIVE = re.compile("live|poll")


@pytest.fixture(scope="module")
def live_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with page_site(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.fixture
def watcher(chromium: Browser, live_site: Served) -> Iterator[Visitor]:
    with visitor(chromium, live_site.client.url) as found:
        found.context.set_default_timeout(30_000)
        yield found


def submit(site: Served, job: str = "needs-gpu") -> int:
    return site.application.runs.submit(Request(job=job)).run_id


def test_a_run_is_watched_from_pending_to_its_end(watcher: Visitor, live_site: Served) -> None:
    run_id = submit(live_site, "nightly-report")
    page = watcher.open(f"/runs/{run_id}")
    expect(page.locator("h1 .badge")).to_have_text("Pending")
    expect(page.locator("#live-mark")).to_have_attribute("data-state", "live")
    live_site.application.local_engine.start()
    expect(page.locator("h1 .badge")).to_have_text("Succeeded", timeout=120_000)
    expect(page.locator(".log-lines li")).to_have_count(2)
    expect(page.locator(".timeline li")).to_have_count(4)
    live_site.application.local_engine.stop()


def test_the_eighth_tab_still_answers_and_follows(watcher: Visitor, live_site: Served) -> None:
    run_id = submit(live_site)
    pages = [watcher.open("/runs") for _ in range(8)]
    live_site.application.runs.cancel(run_id)
    pages[-1].evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it would poll
    for page in (pages[0], pages[-1]):
        expect(page.locator(f"#run-{run_id}")).to_contain_text("Canceled", timeout=120_000)
    states = [page.locator("#live-mark").get_attribute("data-state") for page in pages]
    assert states.count("live") <= 3, "a browser has six connections, and pages need some"


def test_after_a_lost_connection_no_row_is_missing_or_doubled(
    watcher: Visitor, live_site: Served
) -> None:
    known = submit(live_site)
    page = watcher.open("/runs")
    expect(page.locator(f"#run-{known}")).to_contain_text("Pending")
    before = page.locator("#runs tbody tr").count()
    watcher.context.set_offline(True)
    live_site.application.runs.cancel(known)
    added = [submit(live_site) for _ in range(3)]
    watcher.context.set_offline(False)
    expect(page.locator(f"#run-{known}")).to_contain_text("Canceled", timeout=120_000)
    expect(page.get_by_role("link", name="3 new")).to_be_visible(timeout=120_000)
    assert page.locator("#runs tbody tr").count() == before
    page.get_by_role("link", name="3 new").click()
    for run_id in added:
        expect(page.locator(f"#run-{run_id}")).to_have_count(1)
    watcher.faults.clear()  # the browser reports that it was offline


def test_nothing_is_replaced_while_a_person_types(watcher: Visitor, live_site: Served) -> None:
    run_id = submit(live_site)
    page = watcher.open(f"/runs/{run_id}")
    expect(page.locator("#live-mark")).to_have_attribute("data-state", LIVE)
    field = page.get_by_role("searchbox", name="Search the whole log")
    field.press_sequentially("err")
    live_site.application.runs.cancel(run_id)
    expect(page.locator("#live-mark")).to_have_attribute("data-state", "paused")
    field.press_sequentially("or")
    expect(field).to_have_value("error")
    expect(page.locator("h1 .badge")).to_have_text("Pending")
    page.locator("h1").click()
    expect(page.locator("h1 .badge")).to_have_text("Canceled")
