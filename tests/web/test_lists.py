"""Each list of the document page by page while rows are added: what was there comes once, and nothing twice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from collectors.books.stored_mails import add_mail
from collectors.feeds.stored_items import add_feed, add_item
from support.factories import add_worker
from support.web_client import Served, served_application
from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries import books, cursors
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, IndexFile
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile
from tsuzuki.collectors.codeindex.queries import files
from tsuzuki.collectors.codeindex.queries.names import NameIds
from tsuzuki.collectors.commits.queries import projects, targets
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.model.access import Role
from tsuzuki.model.bulk import BulkResult, BulkVerb
from tsuzuki.model.failure_signature import signature_of
from tsuzuki.services.runs import Request, RunFilter
from tsuzuki.store import bulk, failures
from tsuzuki.store.access import sessions, users
from tsuzuki.store.failures import RunFailure
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.web.documents import openapi_of

FILE = """\
feeds:
  accounts:
    default: {type: file, path: posts.jsonl}
jobs:
  bot: {type: feeds, on_event: look, feeds: {news: {url: "https://news.example/feed"}}}
  novelties: {type: books, queries: ["subject:astronomy"]}
  code: {type: codeindex, roots: [tree]}
"""
ROWS = 5
"""With pages of two: three pages, and a row is added after each."""


@dataclass(kw_only=True)
class World:
    """Adds one more row to each list. `number` is another one each time."""

    served: Served
    database: Database
    user_id: int
    feed_id: int
    bulk_id: int

    def add_job(self, number: int) -> None:
        name = f"job-{number * 7919 % 1000:03}"  # before and behind what is there
        self.served.application.jobs.define(name, {"command": ["true"]})

    def add_run(self, _number: int) -> None:
        self.served.application.runs.submit(Request(job="hello"))

    def add_event(self, number: int) -> None:
        self.served.application.events.emit("x", {"number": number})

    def add_audit(self, number: int) -> None:
        self.served.application.settings.set("lease_seconds", 10 + number / 10)

    def add_bulk(self, _number: int) -> None:
        self.served.application.bulk.preview(BulkVerb.CANCEL, RunFilter())

    def add_result(self, number: int) -> None:
        results = [bulk.ResultOfRun(number, BulkResult.CANCELED, None)]
        with self.database.write() as connection:
            bulk.advance(connection, self.bulk_id, position=number, results=results)

    def add_failure(self, number: int) -> None:
        letters = f"it broke {chr(ord('a') + number % 26)}{chr(ord('a') + number // 26)}"
        group_id, signature = signature_of("handler_failed", letters)
        with self.database.write() as connection:
            failures.note(connection, [RunFailure(number, group_id, 1, signature)])

    def add_verification(self, _number: int) -> None:
        self.served.application.verification_runs.start(["ticks"])

    def add_worker(self, number: int) -> None:
        add_worker(self.database, f"host-{number * 7919 % 1000:03}")

    def add_token(self, number: int) -> None:
        name, by = f"token-{number * 7919 % 1000:03}", self.served.application.principal
        self.served.application.tokens.create(name, by=by, role=Role.VIEWER)

    def add_user(self, number: int) -> None:
        name = f"user-{number * 7919 % 1000:03}"
        with self.database.write() as connection:
            users.add(connection, name=name, role=Role.VIEWER, password_hash="none", actor="test")

    def add_session(self, number: int) -> None:
        with self.database.write() as connection:
            sessions.add(
                connection,
                secret_hash=f"{number:064}",
                user_id=self.user_id,
                lifetime_seconds=3600,
                address=None,
                user_agent=None,
            )

    def add_book(self, number: int) -> None:
        with self.database.write() as connection:
            now = self.database.now(connection)
            found = [(0, Book(f"volume-{number}", "Stars"))]
            books.put_page(connection, found, job_name="novelties", run_id=number, now=now)

    def add_books_cursor(self, number: int) -> None:
        with self.database.write() as connection:
            key = f"{number * 7919 % 1000:064}"
            cursors.upsert_collect_cursor(connection, "novelties", key, 7, False)

    def add_mail(self, number: int) -> None:
        with self.database.write() as connection:
            add_mail(connection, f"volume-{number}")

    def add_file(self, number: int) -> None:
        path = f"file-{number * 7919 % 1000:03}.py"
        file = ParsedFile(path=path, size=0, mtime_ns=0, outcome=FileOutcome.INDEXED)
        (tree,) = self.served.application.service("codeindex").find()
        with (
            IndexFile.open(tree.root) as index,
            index.transaction(lambda _connection: True) as connection,
        ):
            files.put_file(connection, file, names=NameIds(), now_ns=1)

    def add_feed(self, number: int) -> None:
        with self.database.write() as connection:
            add_feed(connection, f"feed-{number * 7919 % 1000:03}")

    def add_item(self, _number: int) -> None:
        with self.database.write() as connection:
            add_item(connection, self.feed_id)

    def add_project(self, number: int) -> None:
        path = f"/project-{number}.git"
        found = projects.NewProject(
            kind=ProjectKind.GIT,
            location=path,
            remote_id=None,
            path=path,
            name=path,
            url=path,
            default_branch="main",
        )
        with self.database.write() as connection:
            change = projects.record(connection, found, now=self.database.now(connection))
            targets.follow(connection, targets.Target(change.project.project_id, "main"))

    def add_collection(self, _number: int) -> None:
        service = self.served.application.service("commits").collections
        service.start([])
        service.cancel()


Add = Callable[[World, int], None]
LISTS: dict[str, tuple[str, str, Add]] = {
    "list_jobs": ("jobs?", "name", World.add_job),
    "list_runs": ("runs?", "id", World.add_run),
    "list_events": ("events?", "id", World.add_event),
    "list_audit": ("audit?", "id", World.add_audit),
    "list_bulk": ("bulk?", "id", World.add_bulk),
    "bulk_results": ("bulk/{bulk_id}/results?", "run_id", World.add_result),
    "list_failures": ("failures?", "id", World.add_failure),
    "list_verifications": ("verifications?", "run_id", World.add_verification),
    "list_workers": ("workers?", "id", World.add_worker),
    "list_tokens": ("tokens?", "id", World.add_token),
    "list_users": ("users?", "name", World.add_user),
    "list_sessions": ("sessions?every_user=true&", "id", World.add_session),
    "list_books": ("books?", "volume_id", World.add_book),
    "list_books_cursors": ("books/cursors?", "query_set_hash", World.add_books_cursor),
    "list_mails": ("books/mails?", "id", World.add_mail),
    "list_feeds": ("feeds?", "name", World.add_feed),
    "list_feed_items": ("feeds/items?", "id", World.add_item),
    "list_projects": ("commits/projects?", "project_id", World.add_project),
    "list_targets": ("commits/targets?", "project_id", World.add_project),
    "index_files": ("code/files?", "path", World.add_file),
    "list_collections": ("commits/collections?", "collection_id", World.add_collection),
}
"""The path of each list, what tells its rows apart, and how to add one."""


def confirmed_bulk(connection: Connection) -> int:
    """One that goes on, and may go on up to any run."""
    bulk_id = bulk.create(
        connection, verb=BulkVerb.CANCEL, frozen={}, ceiling_id=10**9, matched=0, actor="test"
    )
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    assert bulk.confirm(connection, bulk_id, actor="test", made_after=long_ago)
    return bulk_id


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    (folder / "tree").mkdir()
    with pytest.MonkeyPatch.context() as patch, served_application(folder) as served:
        patch.setenv(FOLDER_VARIABLE, str(folder / "indexes"))
        served.application.jobs.apply()
        served.application.jobs.define("hello", {"command": ["true"]})
        database: Database = served.application.service("books")._database
        with database.write() as connection:
            bulk_id = confirmed_bulk(connection)
            user = users.add(
                connection, name="ada", role=Role.ADMIN, password_hash="none", actor="test"
            )
            feed_id = add_feed(connection)
        assert user is not None
        world = World(
            served=served,
            database=database,
            user_id=user.id,
            feed_id=feed_id,
            bulk_id=bulk_id,
        )
        world.add_project(0)
        yield world


NUMBERS = count(1)


@pytest.mark.parametrize("operation", LISTS)
def test_every_row_comes_once_while_others_are_added(world: World, operation: str) -> None:
    path, key, add = LISTS[operation]
    path = path.format(bulk_id=world.bulk_id)
    client = world.served.client
    for _ in range(ROWS):
        add(world, next(NUMBERS))
    before = [row[key] for row in client.get(f"{path}limit=200").json["items"]]
    assert len(before) == len(set(before)) >= ROWS
    seen: list[Any] = []
    cursor = ""
    while True:
        page = client.get(f"{path}limit=2{cursor}").json
        seen += [row[key] for row in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
        if len(seen) < len(before):
            add(world, next(NUMBERS))
    assert len(seen) == len(set(seen)), "a row came twice"
    assert set(before) <= set(seen), "a row was left out"


def test_a_cursor_of_one_list_is_refused_by_every_other(world: World) -> None:
    client = world.served.client
    for _, _, add in LISTS.values():
        for _ in range(2):
            add(world, next(NUMBERS))
    other = world.served.application.bulk.preview(BulkVerb.CANCEL, RunFilter()).action.id
    paths = {name: path.format(bulk_id=world.bulk_id) for name, (path, *_) in LISTS.items()}
    paths["results of another"] = f"bulk/{other}/results?"
    for name, path in paths.items():
        cursor = client.get(f"{path}limit=1").json["next_cursor"]
        if cursor is None:
            assert name == "results of another"
            continue
        for another, elsewhere in paths.items():
            answer = client.get(f"{elsewhere}cursor={cursor}")
            expected = (200,) if name == another else (400, "cursor_invalid")
            found = (answer.status,) if answer.status == 200 else (answer.status, answer.code)
            assert found == expected, (name, another)


def test_every_list_of_the_document_is_tried(world: World) -> None:
    lists = {
        operation["operationId"]
        for methods in openapi_of(world.served.server.app)["paths"].values()
        for operation in methods.values()
        if "cursor" in {parameter["name"] for parameter in operation.get("parameters", ())}
    }
    assert lists == LISTS.keys()
