"""What must be true in the end: everything that was served is stored once, posted once and mailed once."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path

from sqlalchemy import text

from soak.outside import Outside
from support import git_oracle
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, index_path
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.store.sql.database import Database

COMMITS = text(
    "SELECT p.name, c.sha, c.author_name, c.author_email, c.committed_date_utc, c.additions, c.deletions"
    " FROM commits c JOIN projects p ON p.project_id = c.project_id"
)
BOOKS = text("SELECT volume_id FROM book_finds")
PAID = text("SELECT item_id, step FROM item_steps WHERE is_paid")
OPEN = {
    "posts that are not sent": text("SELECT count(*) FROM feed_posts WHERE state <> 'sent'"),
    "mails that are not sent": text("SELECT count(*) FROM book_mails WHERE state <> 'sent'"),
}
SYMBOLS = (
    "SELECT f.path, s.name, s.kind, s.line, s.end_line"
    " FROM symbols s JOIN files f ON f.id = s.file_id"
)
BUILD_SECONDS = 60.0


def missing(database: Database, outside: Outside) -> list[str]:
    """What is not there yet."""
    return [
        f"{what}: {len(lacking)} missing, such as {sorted(lacking)[0]}"
        for what, wanted, there in _served_and_there(database, outside)
        if (lacking := set(wanted) - set(there))
    ] + [f"{count} {what}" for what, count in _open(database).items() if count]


def doubled(database: Database, outside: Outside) -> list[str]:
    """What is there twice, or was never served."""
    wrong = []
    for what, wanted, there in _served_and_there(database, outside):
        counted = Counter(there)
        wrong += [f"{what}: {one} {times} times" for one, times in counted.items() if times > 1]
        wrong += [f"{what}: {one} was never served" for one in set(counted) - set(wanted)]
    with database.read() as connection:
        steps = Counter(tuple(row) for row in connection.execute(PAID))
    wrong += [f"step {one} stored {times} times" for one, times in steps.items() if times > 1]
    return wrong


def wrong_in_index(outside: Outside, indexes: Path, fresh: Path) -> list[str]:
    """How the index differs from one that is built of the same tree now."""
    builds = Builds(environ={FOLDER_VARIABLE: str(fresh)})
    assert builds.jobs.wait(builds.start(outside.tree).id, BUILD_SECONDS) is not None
    stored, expected = (_symbols(index_path(outside.tree, one)) for one in (indexes, fresh))
    if stored == expected:
        return []
    lacking, extra = expected - stored, stored - expected
    return [f"index: {len(lacking)} symbols missing, {len(extra)} too many: {[*extra][:3]}"]


def _served_and_there(
    database: Database, outside: Outside
) -> Iterator[tuple[str, Iterable[object], list[object]]]:
    with database.read() as connection:
        commits = [tuple(row) for row in connection.execute(COMMITS)]
        books = list(connection.execute(BOOKS).scalars())
    rows = [
        (name, *row)
        for name, make in outside.repositories.items()
        for row in git_oracle.rows(make.folder, "main")
    ]
    yield "commits", rows, commits
    yield "books", [one["id"] for one in outside.catalogue], books
    titles = [str(one["volumeInfo"]["title"]) for one in outside.catalogue]
    yield "mailed books", titles, [one for mail in outside.mail.messages for one in _listed(mail)]
    posts = [path for one in outside.mastodon.statuses for path in _links(one.text)]
    yield "posts", [article.path for article in outside.articles()], posts


def _open(database: Database) -> dict[str, int]:
    with database.read() as connection:
        return {what: connection.execute(query).scalar_one() for what, query in OPEN.items()}


def _links(post: str) -> list[str]:
    return re.findall(r"http://127\.0\.0\.1:[0-9]+(/articles/\S+)", post)


def _listed(mail: EmailMessage) -> list[str]:
    body = mail.get_body(("plain",))
    assert body is not None
    lines = body.get_content().splitlines()
    return [line.removeprefix("* ") for line in lines if line.startswith("* ")]


def _symbols(path: Path) -> set[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute(SYMBOLS))
