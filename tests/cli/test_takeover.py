"""Databases that an earlier program has made: their tables are taken over with every row, or refused untouched."""

from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from support import git_oracle
from support.former_tables import BULK_COLLECTIONS, COMMITS, CURSORS, ITEMS, FormerDatabase
from support.git_histories import straight
from support.workspace import Ended, Workspace
from tsuzuki.cli.errors import EXIT_CODES
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedSite
from tsuzuki.model.errors import Interrupted, Unreachable
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.schema import takeover

COLLECTION_ID = "550e8400-e29b-41d4-a716-446655440000"
OLDER_COLLECTION_ID = "550e8400-e29b-41d4-a716-446655440001"
FULL_HASH = "a" * 64
USING_COMMITS = ("commits", "targets")
USING_BOOKS = ("books", "ls")
USING_FEEDS = ("feeds", "ls")
"""Commands that use the tables of a collector."""


@pytest.fixture
def former(empty_database_url: str) -> FormerDatabase:
    return FormerDatabase(empty_database_url)


@pytest.fixture
def command(empty: Workspace, former: FormerDatabase) -> Callable[..., Ended]:
    def run(*words: str) -> Ended:
        return empty.run(*words, TSUZUKI_DATABASE_URL=former.url)

    return run


@pytest.fixture
def ask(command: Callable[..., Ended]) -> Callable[..., Any]:
    """The JSON output of a command that must succeed."""

    def run(*words: str) -> Any:
        ended = command(*words, "--output", "json")
        assert ended.code == 0, ended.err
        return ended.data

    return run


# --- commits --------------------------------------------------------------------------------------


def test_projects_and_commits_of_an_earlier_program_are_counted_and_continued(
    former: FormerDatabase, ask: Callable[..., Any], tmp_path: Path
) -> None:
    history = straight(tmp_path / "shop.git", 30)
    rows = sorted(git_oracle.rows(history.folder, "main"), key=lambda row: row.committed_date_utc)
    former.create(COMMITS)
    former.add("projects", (7, "shop"))
    former.add("commits", *((7, "main", *row) for row in rows[:12]))
    ask("db", "upgrade")
    assert all(finding["ok"] for finding in ask("db", "check"))
    (project,) = ask("commits", "projects", "ls")
    assert (project["project_id"], project["name"], project["commits"]) == (7, "shop", 12)
    (target,) = ask("commits", "targets")
    assert target["last_collected"] == rows[11].committed_date_utc

    ask("commits", "projects", "add", str(history.folder))
    ask("commits", "collect")
    (project,) = ask("commits", "projects", "ls")
    assert (project["project_id"], project["commits"]) == (7, len(rows))
    stored = former.execute("SELECT sha FROM commits ORDER BY sha")
    assert stored == sorted((row[0],) for row in rows)
    assert all(finding["ok"] for finding in ask("db", "check"))


def test_a_collection_that_an_earlier_program_left_running_is_shown_and_continued(
    former: FormerDatabase,
    ask: Callable[..., Any],
    command: Callable[..., Ended],
    tmp_path: Path,
) -> None:
    history = straight(tmp_path / "shop.git", 3)
    (first, *_rest) = sorted(
        git_oracle.rows(history.folder, "main"), key=lambda row: row.committed_date_utc
    )
    former.create(COMMITS, BULK_COLLECTIONS)
    former.add("projects", (7, "shop"))
    former.add("commits", (7, "main", *first))
    moment = "2024-05-01T00:00:00Z"
    for collection_id, started in (
        (OLDER_COLLECTION_ID, "2024-04-01T00:00:00Z"),
        (COLLECTION_ID, moment),
    ):
        former.add("bulk_collection_runs", (collection_id, started, None, "running", 2, 0, 1, 0))
        former.add(
            "bulk_collection_results",
            (collection_id, 7, "main", "pending", None, None, None),
            (collection_id, 7, "gone", "failed", None, "no such branch", moment),
        )
    ask("db", "upgrade")
    shown = {run["collection_id"]: run["run_status"] for run in ask("commits", "runs")}
    assert shown == {COLLECTION_ID: "running", OLDER_COLLECTION_ID: "cancelled"}

    ask("commits", "projects", "add", str(history.folder))
    assert command("commits", "collect").code == 1  # a target had failed before
    (run,) = (run for run in ask("commits", "runs") if run["collection_id"] == COLLECTION_ID)
    assert (run["run_status"], run["success_count"], run["failed_count"]) == ("completed", 1, 1)
    assert former.execute("SELECT count(*) FROM commits") == [(3,)]


def test_commits_without_a_table_of_projects_get_one(
    former: FormerDatabase, ask: Callable[..., Any]
) -> None:
    former.create(COMMITS.partition(";")[2].replace("REFERENCES projects(project_id)", ""))
    former.add("commits", (7, "main", "a" * 40, "Ann", "a@b.c", "2024-05-01T00:00:00Z", 1, 2))
    ask("db", "upgrade")
    (project,) = ask("commits", "projects", "ls")
    assert (project["project_id"], project["commits"]) == (7, 1)
    former.execute(
        "INSERT INTO commits SELECT 7, 'side', sha, author_name, author_email,"
        " committed_date_utc, additions, deletions FROM commits"
    )


def test_a_project_whose_source_is_not_known_fails_with_what_to_do(
    former: FormerDatabase, ask: Callable[..., Any], command: Callable[..., Ended]
) -> None:
    former.create(COMMITS)
    former.add("projects", (7, "shop"))
    former.add("commits", (7, "main", "a" * 40, "Ann", "a@b.c", "2024-05-01T00:00:00Z", 1, 2))
    command("commits", "collect")
    (run,) = ask("commits", "runs")
    (result,) = ask("commits", "show", run["collection_id"])["results"]
    assert result["status"] == "failed"
    assert "commits projects add" in result["error_message"]


def test_another_repository_is_not_taken_for_the_former_project(
    former: FormerDatabase, ask: Callable[..., Any], tmp_path: Path
) -> None:
    former.create(COMMITS)
    former.add("projects", (7, "shop"))
    former.add("commits", (7, "main", "a" * 40, "Ann", "a@b.c", "2024-05-01T00:00:00Z", 1, 2))
    ask("commits", "projects", "add", str(straight(tmp_path / "other.git", 2).folder))
    assert {one["project_id"]: one["commits"] for one in ask("commits", "projects", "ls")} == {
        7: 1,
        8: 0,
    }


# --- cursors --------------------------------------------------------------------------------------


def test_cursors_of_an_earlier_program_are_kept(
    former: FormerDatabase, ask: Callable[..., Any]
) -> None:
    former.create(CURSORS)
    former.execute(
        "INSERT INTO collect_cursor (job_name, query_set_hash, start_index) VALUES (?, ?, ?)",
        "novels",
        FULL_HASH,
        80,
    )
    ask("db", "upgrade")
    assert all(finding["ok"] for finding in ask("db", "check"))
    (cursor,) = ask("job", "cursor", "ls")
    assert (cursor["job"], cursor["start_index"], cursor["is_exhausted"]) == (
        "novels",
        80,
        False,
    )


# --- refused, interrupted, repeated ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("using", "tables", "named"),
    [
        (
            USING_COMMITS,
            COMMITS.replace("sha TEXT", "commit_id TEXT").replace("sha)", "commit_id)"),
            "'sha'",
        ),
        (USING_COMMITS, COMMITS.replace("additions INTEGER", "additions TEXT"), "'additions'"),
        (USING_COMMITS, COMMITS.replace("name TEXT NOT NULL", "owner TEXT NOT NULL", 1), "'owner'"),
        (
            USING_COMMITS,
            COMMITS.replace("project_id INTEGER PRIMARY KEY", "project_id INTEGER"),
            "'project_id'",
        ),
        (USING_BOOKS, CURSORS.replace("start_index", "page"), "'start_index'"),
        (USING_FEEDS, ITEMS.replace("retry_count", "tries"), "'retry_count'"),
        (
            USING_BOOKS,
            "CREATE TABLE tsuzuki_book_mails (id INTEGER PRIMARY KEY)",
            "'tsuzuki_book_mails'",
        ),
    ],
)
def test_a_table_with_other_columns_refuses_its_collector_and_the_database_is_left_as_it_was(
    former: FormerDatabase,
    command: Callable[..., Ended],
    using: tuple[str, ...],
    tables: str,
    named: str,
) -> None:
    former.create(tables.replace("REFERENCES projects(project_id)", ""))
    assert command("db", "upgrade").code == command("job", "ls").code == 0
    before = former.tables()
    assert_foreign_table(command(*using, "--output", "json"), named)
    assert former.tables() == before
    assert command("db", "check").code == 0


def test_a_table_with_a_name_of_the_engine_is_refused_and_the_database_left_as_it_was(
    former: FormerDatabase, command: Callable[..., Ended]
) -> None:
    former.create("CREATE TABLE tsuzuki_job_runs (id INTEGER PRIMARY KEY)")
    before = former.tables()
    for words in (("db", "upgrade"), ("job", "ls")):
        assert_foreign_table(command(*words, "--output", "json"), "'tsuzuki_job_runs'")
    assert former.tables() == before


def assert_foreign_table(ended: Ended, named: str) -> None:
    assert ended.code == EXIT_CODES[Unreachable]
    assert ended.error["code"] == "foreign_table"
    assert named in ended.error["message"]
    assert ended.error["hint"]
    assert "CREATE" not in ended.err


def test_rows_that_contradict_a_key_are_refused_without_sql(
    former: FormerDatabase, command: Callable[..., Ended]
) -> None:
    former.create(
        COMMITS.replace("UNIQUE (project_id, branch_name, sha)", "PRIMARY KEY (sha, additions)")
    )
    former.add("projects", (7, "shop"))
    row = ("main", "a" * 40, "Ann", "a@b.c", "2024-05-01T00:00:00Z")
    former.add("commits", (7, *row, 1, 2), (7, *row, 2, 2))
    assert_foreign_table(command(*USING_COMMITS, "--output", "json"), "commits")
    columns = former.execute("SELECT * FROM projects")
    assert columns == [(7, "shop")]


def test_a_takeover_that_was_interrupted_is_repeated_from_the_start(
    former: FormerDatabase,
    command: Callable[..., Ended],
    ask: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    former.create(COMMITS, BULK_COLLECTIONS)
    former.add("projects", (7, "shop"))
    former.add("commits", (7, "main", "a" * 40, "Ann", "a@b.c", "2024-05-01T00:00:00Z", 1, 2))
    before = former.tables()
    with monkeypatch.context() as patch:
        patch.setattr(takeover, "_continue_numbers", interrupt)
        assert command(*USING_COMMITS).code == EXIT_CODES[Interrupted]
    assert former.execute("SELECT * FROM projects") == [(7, "shop")]
    assert "tsuzuki_commit_totals" not in former.tables() - before
    (project,) = ask("commits", "projects", "ls")
    assert (project["project_id"], project["commits"]) == (7, 1)


def interrupt(*_arguments: object) -> None:
    raise KeyboardInterrupt


# --- items ----------------------------------------------------------------------------------------

BOT = """
feeds:
  private_hosts: [127.0.0.1]
  accounts:
    default: {{type: file, path: posts.jsonl}}
jobs:
  bot:
    type: feeds
    on_event: look
    feeds:
      other: {{url: "http://localhost:1/none.xml"}}
      news: {{url: "{url}/news.xml", backfill: all}}
"""


@pytest.fixture
def site() -> Iterator[StandIn]:
    site = FeedSite()
    titles = ("Tram", "Bridge", "Ferry")
    words = "The mayor came, and so did many people."
    articles = [Article(title=title, text=f"{title}. {words}") for title in titles]
    site.add_feed(Feed(path="/news.xml"), articles)
    with site.serve() as server:
        yield server


@pytest.fixture
def bot(empty: Workspace, site: StandIn) -> Workspace:
    empty.file.write_text(BOT.format(url=site.url))
    return empty


def test_items_of_an_earlier_program_are_listed_and_drawn(
    former: FormerDatabase, bot: Workspace, ask: Callable[..., Any], site: StandIn
) -> None:
    former.create(ITEMS)
    go_time = "2024-05-01 09:00:00.5 +0900 JST" if former.is_sqlite else "2024-05-01 00:00:00"
    plain = "2024-05-02 00:00:00"
    rows = [
        (1, f"{site.url}/page/1", "Pending", go_time, 2, 2, 1, go_time, plain),
        (2, f"{site.url}/page/2", "Unprocessed", plain, 0, 0, 0, plain, plain),
        (3, f"{site.url}/page/3", "Deferred", plain, 1, 3, 1, plain, plain),
        (4, f"{site.url}/page/4", "Processed", plain, 3, 0, 0, plain, plain),
    ]
    former.add("items", *rows)
    ask("db", "upgrade")
    assert all(finding["ok"] for finding in ask("db", "check"))
    found = {item["title"]: item for item in ask("feeds", "items")}
    assert {title: item["status"] for title, item in found.items()} == {
        "Pending": "pending",
        "Unprocessed": "unprocessed",
        "Deferred": "deferred",
        "Processed": "processed",
    }
    assert datetime.fromisoformat(found["Pending"]["published_at"]).date() == date(2024, 5, 1)
    ask("feeds", "explain", "1")

    ask("feeds", "process", "bot")
    assert former.execute("SELECT DISTINCT item_id FROM tsuzuki_item_steps ORDER BY 1") == [
        (1,),
        (2,),
        (3,),
    ]
    assert {item["feed"] for item in ask("feeds", "items") if item["id"] < 4} == {"news"}
    assert all(finding["ok"] for finding in ask("db", "check"))


@pytest.mark.parametrize(
    ("column", "status", "reason"),
    [("status", 4, 0), ("status", -1, None), ("reason", 1, 7), ("reason", 3, -1)],
)
def test_items_with_a_number_that_is_no_state_are_refused_and_left_as_they_were(
    former: FormerDatabase,
    command: Callable[..., Ended],
    column: str,
    status: int,
    reason: int | None,
) -> None:
    former.create(ITEMS)
    times = ("2024-05-02 00:00:00",) * 2
    for number in (1, 2, 3):
        odd = (status, reason) if number > 1 else (0, 2)
        url = f"https://news.example/{number}"
        former.add("items", (number, url, "Title", times[0], *odd, 0, *times))
    assert command("db", "upgrade").code == 0
    before = former.tables(), former.execute("SELECT * FROM items ORDER BY id")
    ended = command(*USING_FEEDS, "--output", "json")
    assert (ended.code, ended.error["code"]) == (EXIT_CODES[Unreachable], "foreign_table")
    assert f"2 rows have a {column!r}" in ended.error["message"]
    assert "item 2" in ended.error["message"]
    assert (former.tables(), former.execute("SELECT * FROM items ORDER BY id")) == before


def test_an_item_with_a_time_that_is_none_is_refused_and_left_as_it_was(
    former: FormerDatabase, command: Callable[..., Ended]
) -> None:
    if not former.is_sqlite:
        pytest.skip("PostgreSQL stores only times in a column of times")
    former.create(ITEMS)
    times = ("2024-05-02 00:00:00", "yesterday")
    former.add("items", (1, "https://news.example/1", "Title", times[0], 0, None, 0, *times))
    assert command("db", "upgrade").code == 0
    before = former.tables()
    ended = command(*USING_FEEDS, "--output", "json")
    assert (ended.code, ended.error["code"]) == (EXIT_CODES[Unreachable], "foreign_table")
    assert "'last_checked_at'" in ended.error["message"]
    assert former.tables() == before


def test_a_row_put_into_items_by_sql_is_listed_and_drawn(
    former: FormerDatabase, bot: Workspace, ask: Callable[..., Any], site: StandIn
) -> None:
    ask("feeds", "fetch", "bot")
    plain = "2024-05-02 00:00:00"
    columns = "(url, title, published_at, status, retry_count, created_at, last_checked_at)"
    former.execute(
        f"INSERT INTO items {columns} VALUES (?, ?, ?, ?, ?, ?, ?)",
        *(f"{site.url}/by-hand", "By hand", plain, 0, 0, plain, plain),
    )
    (item,) = (one for one in ask("feeds", "items") if one["title"] == "By hand")
    assert (item["status"], item["feed"], item["waiting"]) == ("unprocessed", None, "ready")
    assert all(finding["ok"] for finding in ask("db", "check"))
    ask("feeds", "process", "bot")
    (steps,) = former.execute(
        "SELECT count(*) FROM tsuzuki_item_steps WHERE item_id = ?", item["id"]
    )
    assert steps[0] > 0


def test_an_item_that_its_feed_lists_is_not_stored_twice_and_belongs_to_that_feed(
    former: FormerDatabase, bot: Workspace, ask: Callable[..., Any], site: StandIn
) -> None:
    former.create(ITEMS)
    plain = "2024-05-02 00:00:00"
    for number, status in ((1, 0), (2, 3)):
        url = f"{site.url}/articles/{number}"
        former.add("items", (number, url, "Known", plain, status, None, 0, plain, plain))
    for _time in range(2):
        ask("feeds", "fetch", "bot")
        found = {one["url"].rpartition("/")[2]: one for one in ask("feeds", "items")}
        assert {name: one["feed"] for name, one in found.items()} == dict.fromkeys("123", "news")
        assert [found[name]["status"] for name in "123"] == [
            "unprocessed",
            "processed",
            "unprocessed",
        ]
    assert former.execute(
        "SELECT count(*) FROM tsuzuki_item_details WHERE changed_at IS NOT NULL"
    ) == [(0,)]


def test_items_that_contradict_their_waiting_rows_are_reported(
    former: FormerDatabase, bot: Workspace, ask: Callable[..., Any], command: Callable[..., Ended]
) -> None:
    ask("feeds", "fetch", "bot")
    former.execute("DELETE FROM tsuzuki_waiting_items")
    ended = command("db", "check", "--output", "json")
    assert ended.code == 1
    assert [one["subject"] for one in ended.data if not one["ok"]] == ["feeds"]
