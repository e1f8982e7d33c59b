"""Books with real processes: killed between pages, killed while mailing, and two at once."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.daemons import Daemons, eventually
from tsuzuki.collectors.books.queries import outbox
from tsuzuki.collectors.books.queries.books import BookFilter, find
from tsuzuki.collectors.books.queries.cursors import list_collect_cursors
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks, volumes
from tsuzuki.collectors.books.sandbox.smtp import MailServer, SmtpStep
from tsuzuki.collectors.books.tables import COMPONENT
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

PAGES = 50


@pytest.fixture
def components() -> Sequence[Component]:
    return (ENGINE, COMPONENT)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(GoogleBooks(catalogue=volumes(40 * PAGES))) as server:
        yield server


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture
def shop(
    tmp_path: Path, quick_database: Database, server: StandIn, mail_server: MailServer
) -> Database:
    """A database with the tables of books, and a file with two jobs for the daemons to read."""
    (tmp_path / "tsuzuki.yaml").write_text(
        f"""
books:
  base_url: {server.url}/books/v1
  api_key: "${{ANY:-any}}"
  daily_limit: 1000
  mail: {{host: {mail_server.host}, port: {mail_server.port}, encryption: none,
          from: a@example.org, to: b@example.org}}
jobs:
  novelties: {{type: books, queries: [python], max_per_run: 10000, mail_limit: 0}}
  twins: {{type: books, queries: [python], max_per_run: 10000, mail_limit: 0,
           concurrency_policy: allow, max_concurrent: 2}}
  letters: {{type: books, queries: [python], max_per_run: 10, mail_limit: 5}}
"""
    )
    return quick_database


def starts(server: StandIn) -> list[int]:
    return [int(seen.request.query["startIndex"]) for seen in server.requests]


def stored(database: Database, job: str) -> set[str]:
    with database.read() as connection:
        return {
            one.book.volume_id for one in find(connection, BookFilter(job_name=job), limit=100_000)
        }


def last_of(runs: Runs, run_id: int) -> Run:
    """The last retry of the run, ended; the run itself if there is none."""
    while True:
        ended = runs.wait(run_id, timeout_seconds=120)
        retried = runs.get(run_id).retried_as
        if retried is None:
            return ended
        run_id = retried


def test_a_kill_after_thirty_of_fifty_pages_costs_at_most_the_page_in_flight(
    shop: Database, server: StandIn, daemons: Daemons, runs: Runs
) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.HANG, skip=30))
    first = daemons.start("up")
    run_id = runs.submit(Request(job="novelties")).run_id
    eventually(lambda: server.faults.held == 1 or None, what="the 31st page to be asked for")
    # It is asked for while the 30th is being committed.
    eventually(lambda: len(stored(shop, "novelties")) >= 30 * 40, what="thirty pages to be stored")
    first.kill()
    server.faults.clear()
    eventually(lambda: len(starts(server)) == 31 or None, what="the broken question to be noted")
    asked_before = len(starts(server))
    assert len(stored(shop, "novelties")) == 30 * 40

    daemons.start("up")
    assert last_of(runs, run_id).state is RunState.SUCCEEDED
    assert len(starts(server)) - asked_before <= PAGES - 30 + 1
    assert stored(shop, "novelties") == {one["id"] for one in volumes(40 * PAGES)}
    with shop.read() as connection:
        (cursor,) = list_collect_cursors(connection, "novelties")
    assert (cursor.start_index, cursor.is_exhausted) == (40 * PAGES, True)
    twice = {start for start, times in Counter(starts(server)).items() if times > 1}
    assert twice <= {30 * 40}


def test_two_processes_of_one_job_never_fetch_the_same_page(
    shop: Database, server: StandIn, daemons: Daemons, runs: Runs
) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.HANG, skip=10))
    daemons.start("up", "--lead-only")
    for _ in range(2):
        daemons.start("worker", "--capacity", "1")
    both = [runs.submit(Request(job="twins")).run_id for _ in range(2)]
    eventually(lambda: server.faults.held == 1 or None, what="the first run to be in the middle")
    eventually(
        lambda: any(runs.get(run_id).run.state.is_final for run_id in both),
        what="the second run to step aside",
    )
    server.faults.clear()
    results = [runs.wait(run_id, timeout_seconds=120).result["collect"] for run_id in both]
    assert sorted(str(result["skipped"]) for result in results) == ["None", "busy"]
    assert max(Counter(starts(server)).values()) == 1
    assert len(stored(shop, "twins")) == 40 * PAGES


def test_a_sender_killed_while_the_server_answers_sends_no_second_mail(
    shop: Database, daemons: Daemons, runs: Runs, mail_server: MailServer
) -> None:
    mail_server.fail_at(SmtpStep.HANG)
    first = daemons.start("up")
    run_id = runs.submit(Request(job="letters")).run_id
    assert mail_server.taken.wait(120)
    first.kill()
    mail_server.release()

    daemons.start("up")
    last = last_of(runs, run_id)
    assert last.state is RunState.FAILED
    assert "mail_unsettled" in (last.error or "")
    with shop.read() as connection:
        mails = [(mail.state.value, mail.job_name) for mail in outbox.find(connection)]
    assert ("unsettled", "letters") in mails
    ids = [message["Message-ID"] for message in mail_server.messages]
    assert len(ids) == len(set(ids))
    listed = [line for message in mail_server.messages for line in titles(message)]
    assert len(listed) == len(set(listed)) > 0


def titles(message: object) -> list[str]:
    body = message.get_body(("plain",))  # type: ignore[attr-defined]
    return [line for line in body.get_content().splitlines() if line.startswith("* ")]
