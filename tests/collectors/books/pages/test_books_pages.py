"""Books: where each search continues, the quota, the next mail, the ledger of mails, and a reset by typed name."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import update

from support.collect_site import collect_site
from support.factories import add_worker, depose_and_take
from support.page_checks import Layouts, Visitor, check_twin, visitor
from support.page_site import HOSTILE
from support.web_client import Served
from tsuzuki.collectors.books.tables import book_mails
from tsuzuki.model.run import RunRef
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request
from tsuzuki.store.runs import moves


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with collect_site(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.mark.parametrize("path", ["/books", "/books/jobs/novelties", "/books/found"])
def test_each_page_of_books_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_a_search_shows_its_position_and_what_it_found(person: Visitor) -> None:
    view = check_twin(person, "/books")
    botany, novelties = view["searches"]
    assert (novelties["position"], novelties["is_exhausted"]) == (8, False)
    assert (novelties["found"]["value"], novelties["undelivered"]["value"]) == (8, 6)
    assert (botany["position"], botany["last"]) == (0, None)
    assert view["quota"]["left"] == view["quota"]["limit"]
    page = person.open("/books")
    page.locator("#search-novelties").get_by_role("link", name="6").click()
    expect(page.locator(".book")).to_have_count(6)
    expect(page.locator(".chip")).to_have_count(2)


def test_the_next_mail_is_shown_as_it_would_be_sent_and_hostile_titles_do_no_harm(
    person: Visitor,
) -> None:
    page = person.open("/books/jobs/novelties")
    expect(page.locator(".digest-subject")).to_contain_text("[novelties] 6 new books")
    expect(page.locator(".digest pre")).to_contain_text("onerror=alert(1)")
    assert page.locator("main img").count() == 0
    page = person.open("/books/found?search=onerror")
    expect(page.locator(".book-title")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".book a").count() == 0
    assert check_twin(person, "/books/found?search=onerror")["books"][0]["title"] == HOSTILE


def test_a_cursor_is_reset_only_with_the_typed_name(chromium: Browser, site: Served) -> None:
    with visitor(chromium, site.client.url, javascript=False) as person:
        page = person.open("/books/jobs/novelties/reset")
        expect(page.get_by_role("heading", name="Reset 2 cursors?")).to_be_visible()
        page.get_by_label("Type the job name to confirm").fill("novelty")
        page.get_by_role("button", name="Reset cursor").click()
        expect(page.get_by_role("alert")).to_contain_text("Nothing was reset.")
        expect(page.get_by_label("Type the job name to confirm")).to_have_value("novelty")
        person.faults.clear()  # the browser reports the refusal
        assert len(site.application.service("books").cursors("novelties")) == 2
        page.get_by_label("Type the job name to confirm").fill("novelties")
        page.get_by_role("button", name="Reset cursor").click()
        expect(page.locator("#flash")).to_contain_text("Cursors of novelties reset: 2.")
    assert site.application.service("books").cursors("novelties") == []
    (entry,) = site.application.audit.find(limit=1)
    assert (entry.action, entry.actor.partition(":")[0]) == ("books.cursor.reset", "web")


def test_an_unsettled_mail_is_decided_once(person: Visitor, site: Served) -> None:
    page = person.open("/books/mails")
    expect(page.locator("#mails tbody tr")).to_have_count(2)
    page.locator("#mails tbody tr", has_text="Outcome unknown").get_by_role("link").first.click()
    expect(page.locator(".book")).to_have_count(1)
    page.get_by_role("link", name="Resolve …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    dialog.get_by_role("button", name="Mark as delivered").click()
    expect(page.locator("#flash")).to_have_text("Email 2 marked as delivered.")
    expect(page.get_by_role("link", name="Resolve …")).to_have_count(0)
    service = site.application.service("books")
    assert [view.mail.state for view in service.mails()] == ["sent", "sent"]


def test_a_collection_is_started_from_the_page(person: Visitor, site: Served) -> None:
    page = person.open("/books/jobs/botany")
    page.get_by_role("link", name="Email …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    dialog.get_by_role("button", name="Email").click()
    expect(page.locator("#flash")).to_contain_text("started.")
    (run,) = site.application.runs.find(RunFilter(job_name="botany"))
    assert run.arguments == {"collect": False}


def test_a_filter_that_makes_no_sense_is_told(person: Visitor, site: Served) -> None:
    page = person.open("/books/found?job=noveltie")
    expect(page.get_by_role("alert")).to_contain_text("novelties")
    expect(page.locator(".chip", has_text="noveltie")).to_be_visible()
    page = person.open("/books/found?undelivered=true")
    expect(page.get_by_role("alert")).to_contain_text("depends on the job")
    assert site.client.as_(None).get("/books/jobs/command").status == 404


def ended_run(site: Served, result: dict[str, Any]) -> int:
    """A run of botany that has ended with this result."""
    database = site.application.service("books")._database
    term = depose_and_take(database, holder=str(uuid4()))
    worker_id = f"worker-{term.epoch}"
    add_worker(database, worker_id)
    run_id = site.application.runs.submit(Request(job="botany")).run_id
    with database.write() as connection:
        assignment = moves.Assignment(run=RunRef(id=run_id, version=1), worker_id=worker_id)
        assert moves.assign(connection, term=term, assignments=[assignment])
        assigned = [RunRef(id=run_id, version=2)]
        started = moves.start(connection, worker_id=worker_id, runs=assigned)[run_id].started
        end = moves.RunEnd(run=started, state=RunState.SUCCEEDED, result=result)
        assert moves.finish(connection, worker_id=worker_id, ends=[end])
    return run_id


def test_the_last_collection_says_why_it_stopped_while_the_next_run_is_pending(
    site: Served,
) -> None:
    told = {"stop_reason": "quota", "total_items": 480, "start_index": 0}
    run_id = ended_run(site, {"collect": told})
    site.application.runs.submit(Request(job="botany"))
    botany = site.client.as_(None).get("/books.json").json["searches"][0]["last"]
    assert (botany["run_id"], botany["stop_reason"]) == (run_id, "quota")
    assert botany["total_items"] == 480
    assert b"Waiting for quota" in site.client.as_(None).get("/books").body


def test_the_page_of_a_run_lists_the_mails_it_sent(site: Served) -> None:
    run_id = ended_run(site, {})
    service = site.application.service("books")
    mails = service.mails()
    try:
        with service._database.write() as connection:
            sent = update(book_mails).values(job_name="botany", sent_by_run=run_id)
            connection.execute(sent)
        page = site.client.as_(None).get(f"/runs/{run_id}")
        assert page.status == 200
        assert page.body.count(b'id="act-mail-') == len(mails)
    finally:
        with service._database.write() as connection:
            connection.execute(update(book_mails).values(job_name="novelties", sent_by_run=None))
