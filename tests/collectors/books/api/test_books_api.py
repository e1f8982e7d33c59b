"""Books over HTTP: lists page by page, cursors that are reset on purpose only, quota, and the next mail."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors.books.stored_mails import add_mail
from support.web_client import Client, Served, served_application
from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries import books, cursors
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.outward.outbox import OutboxState

SENDING, UNSETTLED = OutboxState.SENDING, OutboxState.UNSETTLED
QUERIES = ["subject:astronomy"]
FILE = """\
jobs:
  novelties: {type: books, queries: ["subject:astronomy"]}
  other: {type: books, queries: ["subject:botany"]}
  command: {command: ["true"]}
"""
START = datetime(2026, 11, 1, tzinfo=UTC)


def put_books(served: Served) -> None:
    """Seven books of one job, in two pages of equal and later time, and one of another."""
    with served.application.service("books")._database.write() as connection:
        for page, first in enumerate((0, 4)):
            found = [
                (index, Book(f"v{index}", f"Stars {index}", authors=("Ada",)))
                for index in range(first, first + 4 - page)
            ]
            now = START + timedelta(hours=page)
            books.put_page(connection, found, job_name="novelties", run_id=1, now=now)
        books.put_page(connection, [(0, Book("x", "Moss"))], job_name="other", run_id=2, now=START)
        key = compute_query_set_hash(QUERIES)
        cursors.upsert_collect_cursor(connection, "novelties", key, 7, False)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    with served_application(folder) as served:
        served.application.jobs.apply()
        put_books(served)
        yield served


def all_pages(client: Client, path: str) -> list[str]:
    seen: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"{path}&limit=2{cursor}").json
        seen += [item["volume_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            return seen
        cursor = f"&cursor={page['next_cursor']}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("books?job=novelties", ["v4", "v5", "v6", "v0", "v1", "v2", "v3"]),
        ("books?search=", ["v4", "v5", "v6", "v0", "v1", "v2", "v3", "x"]),
        ("books?job=novelties&undelivered=true", ["v4", "v5", "v6", "v0", "v1", "v2", "v3"]),
        ("books?search=moss", ["x"]),
    ],
)
def test_every_book_comes_once_and_is_counted(
    client: Client, path: str, expected: list[str]
) -> None:
    assert all_pages(client, path) == expected
    assert client.get(f"{path}&count=true").json["count"] == {"value": len(expected), "exact": True}
    assert client.get(f"{path}&limit=1").json["items"][0]["volume_id"] == expected[0]


def test_a_filter_that_makes_no_sense_is_refused(client: Client) -> None:
    answer = client.get("books?undelivered=true")
    assert (answer.status, answer.json["problems"][0]["where"]) == (422, "query.undelivered")
    answer = client.get("books?job=noveltie")
    assert (answer.status, answer.code) == (404, "job_unknown")
    assert "novelties" in answer.json["hint"]


def test_quota_and_preview_change_nothing(client: Client) -> None:
    quota = client.get("books/quota").json
    assert (quota["calls"], quota["left"], quota["refused_at"]) == (0, quota["limit"], None)
    for _ in range(2):
        preview = client.get("books/jobs/novelties/preview").json
        assert [book["volume_id"] for book in preview["books"]][:2] == ["v0", "v1"]
        assert "7 new books" in preview["digest"]["subject"]
    assert client.get("books/jobs/command/preview").code == "not_a_books_job"


def test_cursors_are_reset_only_if_it_is_confirmed(client: Client, served: Served) -> None:
    (cursor,) = client.get("books/cursors").json["items"]
    assert (cursor["job"], cursor["start_index"], cursor["is_current"]) == ("novelties", 7, True)
    for body in ({}, {"confirm": False}):
        assert client.post("books/jobs/novelties/reset", body).status == 422
    assert len(client.get("books/cursors?job=novelties").json["items"]) == 1
    answer = client.post("books/jobs/novelties/reset", {"confirm": True})
    assert (answer.status, answer.json) == (200, {"job": "novelties", "cursors": 1})
    assert client.get("books/cursors?job=novelties").json["items"] == []
    (entry,) = served.application.audit.find(object_type="job", object_id="novelties")[:1]
    assert (entry.action, entry.actor) == ("books.cursor.reset", "user:admin")
    assert client.post("books/jobs/command/reset", {"confirm": True}).code == "job_unknown"


def test_collecting_and_mailing_are_runs_with_their_arguments(client: Client) -> None:
    for path, body, arguments in (
        ("collect", None, {}),
        ("collect", {"mail": False}, {"mail": False}),
        ("mail", None, {"collect": False}),
    ):
        started = client.as_("operator").post(f"books/jobs/novelties/{path}", body)
        assert (started.status, started.json["arguments"]) == (201, arguments)
    assert client.post("books/jobs/command/collect").code == "not_a_books_job"


def test_mails_are_listed_and_an_unsettled_one_is_decided(client: Client, served: Served) -> None:
    with served.application.service("books")._database.write() as connection:
        mails = [
            add_mail(connection, "v0", SENDING, UNSETTLED),
            add_mail(connection, "v1", SENDING, UNSETTLED),
            add_mail(connection, "v2"),
        ]
    page = client.get("books/mails?limit=2").json
    rest = client.get(f"books/mails?limit=2&cursor={page['next_cursor']}").json
    assert [mail["id"] for mail in page["items"] + rest["items"]] == mails[::-1]
    assert client.post(f"books/mails/{mails[0]}/mark-sent").json["state"] == "sent"
    assert client.post(f"books/mails/{mails[1]}/resend").json["state"] == "intended"
    again = client.post(f"books/mails/{mails[0]}/mark-sent")
    assert (again.status, again.code) == (409, "mail_settled")
    assert client.post("books/mails/999/resend").code == "mail_unknown"
