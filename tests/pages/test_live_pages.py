"""Live pages: a run that is watched, many tabs, a connection that breaks, and a person who is typing."""

import re

import pytest
from playwright.sync_api import expect

from support.page_checks import Visitor
from support.web_client import Served
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request

LIVE = re.compile("live|poll")


def submit(site: Served, job: str = "needs-gpu") -> int:
    return site.application.runs.submit(Request(job=job)).run_id


def test_a_run_is_watched_from_pending_to_its_end(person: Visitor, site: Served) -> None:
    run_id = submit(site, "nightly-report")
    page = person.open(f"/runs/{run_id}")
    expect(page.locator("h1 .badge")).to_have_text("Pending")
    expect(page.locator("#live-mark")).to_have_attribute("data-state", "live")
    site.application.local_engine.start()
    expect(page.locator("h1 .badge")).to_have_text("Succeeded", timeout=120_000)
    expect(page.locator(".log-lines li")).to_have_count(2)
    expect(page.locator(".timeline li")).to_have_count(4)
    site.application.local_engine.stop()


def test_the_eighth_tab_still_answers_and_the_others_follow(person: Visitor, site: Served) -> None:
    run_id = submit(site)
    tabs = [person.open("/runs") for _ in range(8)]
    for tab in tabs:
        expect(tab.locator("#live-mark")).to_have_attribute("data-state", LIVE)
    states = [tab.locator("#live-mark").get_attribute("data-state") for tab in tabs]
    assert states.count("live") <= 3, "a browser has six connections, and pages need some"
    tabs[-1].goto(f"{person.url}/runs/{run_id}/cancel")
    tabs[-1].get_by_role("button", name=f"Cancel run {run_id}").click()
    expect(tabs[-1].locator("#flash")).to_be_visible()
    assert site.application.runs.get(run_id).run.state is RunState.CANCELED
    tabs[-2].evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it would poll
    for tab in (tabs[0], tabs[-2]):
        expect(tab.locator(f"#run-{run_id}")).to_contain_text("Canceled", timeout=120_000)


@pytest.mark.full
def test_a_lost_connection_comes_back_by_itself(person: Visitor, site: Served) -> None:
    known = submit(site)
    page = person.open("/runs")
    expect(page.locator(f"#run-{known}")).to_contain_text("Pending")
    before = page.locator("#runs tbody tr").count()
    person.context.set_offline(True)
    site.application.runs.cancel(known)
    added = [submit(site) for _ in range(3)]
    person.context.set_offline(False)
    expect(page.locator(f"#run-{known}")).to_contain_text("Canceled", timeout=120_000)
    expect(page.get_by_role("link", name="3 new")).to_be_visible(timeout=120_000)
    assert page.locator("#runs tbody tr").count() == before
    page.get_by_role("link", name="3 new").click()
    for run_id in added:
        expect(page.locator(f"#run-{run_id}")).to_have_count(1)
    person.faults.clear()  # the browser reports that it was offline


def test_nothing_is_replaced_while_a_person_types(person: Visitor, site: Served) -> None:
    run_id = submit(site)
    page = person.open(f"/runs/{run_id}")
    expect(page.locator("#live-mark")).to_have_attribute("data-state", LIVE)
    field = page.get_by_role("searchbox", name="Search the whole log")
    field.press_sequentially("err")
    site.application.runs.cancel(run_id)
    expect(page.locator("#live-mark")).to_have_attribute("data-state", "paused")
    field.press_sequentially("or")
    expect(field).to_have_value("error")
    expect(page.locator("h1 .badge")).to_have_text("Pending")
    page.locator("h1").click()
    expect(page.locator("h1 .badge")).to_have_text("Canceled")
