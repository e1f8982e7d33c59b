"""`tsuzuki run-due --dry-run`: jobs that can are run without sending anything, the others are listed; all stay due."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from support.databases import opened
from support.factories import take_lead
from support.former_tables import CURSORS, FormerDatabase
from support.workspace import Workspace
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks, volumes
from tsuzuki.collectors.books.sandbox.smtp import MailServer
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.sandbox.server import StandIn

KEY = "k3y-that-stays-secret"


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(GoogleBooks(catalogue=volumes(120), key=KEY)) as server:
        yield server


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture
def shop(
    empty: Workspace, empty_database_url: str, server: StandIn, mail_server: MailServer
) -> Workspace:
    """A workspace on either database, with a books job and a command that are due tomorrow."""
    empty.file.write_text(
        f"""
database_url: {empty_database_url}
books:
  base_url: {server.url}/books/v1
  api_key: ${{BOOKS_KEY}}
  mail:
    host: {mail_server.host}
    port: {mail_server.port}
    encryption: none
    from: tsuzuki@example.org
    to: [reader@example.org]
jobs:
  novelties:
    type: books
    queries: [python]
    max_per_run: 50
    schedule: every 24h
  greet:
    command: [echo, hello]
    on_event: greet
"""
    )
    return empty


def dry_run(shop: Workspace) -> list[dict[str, Any]]:
    """What it lists; its log is on stderr."""
    listed: list[dict[str, Any]] = shop.ok(
        "run-due", "--dry-run", "--output", "json", BOOKS_KEY=KEY
    ).data
    return listed


def test_the_five_steps_of_a_check_by_hand(
    shop: Workspace, empty_database_url: str, server: StandIn, mail_server: MailServer
) -> None:
    database = FormerDatabase(empty_database_url)
    shop.ok("run-due", "--dry-run", BOOKS_KEY=KEY)
    every = "SELECT * FROM collect_cursor"
    ((name, query_set_hash, start_index, is_exhausted, _),) = database.execute(every)
    assert (name, start_index, is_exhausted) == ("novelties", 50, 0)
    assert len(str(query_set_hash)) == 64
    shop.ok("run-due", "--dry-run", BOOKS_KEY=KEY)
    ((_, _, start_index, _, _),) = database.execute(every)
    assert start_index == 100
    ended = shop.ok("job", "cursor", "reset", "novelties", "--yes")
    assert ended.out == "Reset 1 cursor(s) for job: novelties\n"
    assert database.execute(f"{every} WHERE job_name='novelties'") == []
    starts = [int(seen.request.query["startIndex"]) for seen in server.requests]
    assert starts == [0, 40, 50, 90]
    assert mail_server.messages == []


def test_a_cursor_of_an_earlier_program_is_continued(
    shop: Workspace, empty_database_url: str, server: StandIn, mail_server: MailServer
) -> None:
    former = FormerDatabase(empty_database_url)
    former.create(CURSORS)
    full_hash = sha256(b"python").hexdigest()
    former.execute(
        "INSERT INTO collect_cursor (job_name, query_set_hash, start_index) VALUES (?, ?, ?)",
        *("novelties", full_hash, 60),
    )
    shop.ok("run-due", "--dry-run", BOOKS_KEY=KEY)
    assert [int(seen.request.query["startIndex"]) for seen in server.requests] == [60, 100]
    ((name, found_hash, start_index, is_exhausted, _),) = former.execute(
        "SELECT * FROM collect_cursor"
    )
    assert (name, found_hash, start_index, is_exhausted) == ("novelties", full_hash, 110, 0)
    assert mail_server.messages == []


def test_other_jobs_are_listed_and_all_stay_due(shop: Workspace, mail_server: MailServer) -> None:
    shop.ok("job", "apply")
    shop.ok("event", "emit", "greet")
    shop.ok("job", "run", "novelties")
    for number in (1, 2):
        listed = {row["job"]: row for row in dry_run(shop)}
        assert listed["greet"]["what"] == "run for event 1"
        assert (listed["greet"]["dry_run"], listed["greet"]["state"]) == (None, None)
        assert listed["novelties"]["what"] == "run 1 is waiting"
        assert (listed["novelties"]["dry_run"], listed["novelties"]["state"]) == (
            number + 1,
            "SUCCEEDED",
        )
    assert mail_server.messages == []
    shop.ok("run-due", BOOKS_KEY=KEY)
    assert len(mail_server.messages) == 1
    assert {run["state"] for run in shop.data("run", "ls")} == {"SUCCEEDED"}
    assert dry_run(shop) == []


def test_a_job_that_is_not_due_is_not_run(shop: Workspace, server: StandIn) -> None:
    shop.ok("books", "collect", "novelties", BOOKS_KEY=KEY)
    asked = server.count()
    assert dry_run(shop) == []
    assert server.count() == asked


def test_a_dry_run_that_fails_is_the_exit_code_and_is_not_tried_again(
    shop: Workspace, server: StandIn
) -> None:
    shop.file.write_text(shop.file.read_text().replace("max_per_run: 50", "max_retries: 3"))
    server.faults.add(StandInFault(status=503, headers={"Retry-After": "3600"}))
    ended = shop.run("run-due", "--dry-run", "--output", "json", BOOKS_KEY=KEY)
    assert (ended.code, ended.data[0]["state"]) == (1, "FAILED")
    assert [run["state"] for run in shop.data("run", "ls")] == ["CANCELED", "FAILED"]


def test_without_such_a_job_nothing_is_written(workspace: Workspace) -> None:
    workspace.append("  later:\n    command: [echo, later]\n")
    before = workspace.content()
    workspace.ok("run-due", "--dry-run")
    assert workspace.content() == before


def test_while_another_process_leads_jobs_are_listed_and_nothing_is_run(
    shop: Workspace, empty_database_url: str
) -> None:
    shop.ok("db", "upgrade")
    with opened(empty_database_url) as database:
        take_lead(database)
        ended = shop.run("run-due", "--dry-run", "--output", "json", BOOKS_KEY=KEY)
    assert (ended.code, [row["dry_run"] for row in ended.data]) == (6, [None])
    assert shop.data("run", "ls") == []
