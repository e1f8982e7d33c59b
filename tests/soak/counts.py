"""What must be true in the end: everything that was served is stored once, posted once and mailed once, and each
number that is kept beside it says the same. What was served is counted outside: by git, by the stand-ins and in the
files of the tree. Where nothing was served nothing is proved, which is a finding too."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from email.message import EmailMessage

from sqlalchemy import TextClause, text

from soak.outside import Outside
from support import git_oracle
from tsuzuki.collectors.feeds.tables import PreparationStep
from tsuzuki.store.sql.database import Database

COMMITS = text(
    "SELECT p.name, c.sha, c.author_name, c.author_email, c.committed_date_utc, c.additions, c.deletions"
    " FROM commits c JOIN projects p ON p.project_id = c.project_id"
)
PARENTS = text(
    "SELECT p.name, c.commit_sha, c.parents"
    " FROM tsuzuki_commit_parents c JOIN projects p ON p.project_id = c.project_id"
)
SUMS = "p.name, CAST(sum(c.commits) AS INTEGER), CAST(sum(c.additions) AS INTEGER), CAST(sum(c.deletions) AS INTEGER)"
TOTALS = {
    "commits by month": text(
        f"SELECT {SUMS} FROM tsuzuki_commit_totals c"
        " JOIN projects p ON p.project_id = c.project_id GROUP BY p.name"
    ),
    "commits by day": text(
        f"SELECT {SUMS} FROM tsuzuki_commit_days c JOIN tsuzuki_commit_authors a ON a.author_id = c.author_id"
        " JOIN projects p ON p.project_id = a.project_id GROUP BY p.name"
    ),
}
BOOKS = text(
    "SELECT f.list_index, b.volume_id, b.title"
    " FROM tsuzuki_book_finds f JOIN tsuzuki_books b ON b.volume_id = f.volume_id"
)
MAILS = text("SELECT message_id FROM tsuzuki_book_mails")
PAID = text("SELECT item_id, step FROM tsuzuki_item_steps WHERE is_paid")
CALLS = text("SELECT count(*) FROM tsuzuki_item_steps WHERE model IS NOT NULL")
PAID_STEPS = (PreparationStep.SCREENING, PreparationStep.SUMMARY)
OPEN = {
    "posts that are not sent": text(
        "SELECT count(*) FROM tsuzuki_feed_posts WHERE state <> 'sent'"
    ),
    "mails that are not sent": text(
        "SELECT count(*) FROM tsuzuki_book_mails WHERE state <> 'sent'"
    ),
}


def missing(database: Database, outside: Outside) -> list[str]:
    """What is not there yet."""
    return [
        f"{what}: {len(lacking)} missing, such as {sorted(lacking)[0]}"
        for what, wanted, there in _served_and_there(database, outside)
        if (lacking := set(wanted) - set(there))
    ] + [f"{count} {what}" for what, query in OPEN.items() if (count := _scalar(database, query))]


def wrong(database: Database, outside: Outside) -> list[str]:
    """What is there twice or was never served, and what is counted wrongly."""
    found = []
    for what, wanted, there in _served_and_there(database, outside):
        served, counted = set(wanted), Counter(there)
        found += [f"{what}: {one} {times} times" for one, times in counted.items() if times > 1]
        found += [f"{what}: {one} was never served" for one in set(counted) - served]
        found += [] if served else [f"{what}: nothing was served, so nothing is proved"]
    return found + _wrong_totals(database, outside) + _wrong_payments(database, outside)


def _served_and_there(
    database: Database, outside: Outside
) -> Iterator[tuple[str, Iterable[object], list[object]]]:
    yield "commits", list(_git_rows(outside)), _rows(database, COMMITS)
    parents = [
        (name, *row)
        for name, make in outside.repositories.items()
        for row in git_oracle.parents(make.folder, "main")
    ]
    yield "parents of commits", parents, _rows(database, PARENTS)
    titles = [str(one["volumeInfo"]["title"]) for one in outside.catalogue]
    listed = [
        (index, one["id"], title)
        for index, (one, title) in enumerate(zip(outside.catalogue, titles, strict=True))
    ]
    yield "books", listed, _rows(database, BOOKS)
    mails = outside.mail.messages.copy()
    yield "mailed books", titles, [title for mail in mails for title in _listed(mail)]
    intended = [message_id for (message_id,) in _rows(database, MAILS)]
    yield "mails", intended, [str(mail["Message-ID"]) for mail in mails]
    articles = [(article.path, article.title) for article in outside.articles()]
    posts = [post for status in outside.mastodon.statuses for post in _told_in(status.text)]
    yield "posts", articles, posts


def _git_rows(outside: Outside) -> Iterator[tuple[str, str, str, str, str, int, int]]:
    for name, make in outside.repositories.items():
        for row in git_oracle.rows(make.folder, "main"):
            yield name, *row


def _wrong_totals(database: Database, outside: Outside) -> list[str]:
    """Counts that are kept beside the commits: a page that is stored twice leaves the commits as they are."""
    expected: dict[str, tuple[int, int, int]] = dict.fromkeys(outside.repositories, (0, 0, 0))
    for name, *_about, additions, deletions in _git_rows(outside):
        commits, added, deleted = expected[name]
        expected[name] = (commits + 1, added + additions, deleted + deletions)
    return [
        f"{what} of {name}: {stored.get(name)} instead of {numbers}"
        for what, query in TOTALS.items()
        for stored in [{name: numbers for name, *numbers in _rows(database, query)}]
        for name, numbers in expected.items()
        if stored.get(name) != [*numbers]
    ]


def _wrong_payments(database: Database, outside: Outside) -> list[str]:
    """Each article is screened once and summed up once, and no request was paid for that is not recorded."""
    steps = Counter(_rows(database, PAID))
    found = [f"step {one} stored {times} times" for one, times in steps.items() if times > 1]
    articles, paid, calls = (
        len(outside.articles()),
        outside.gemini.paid.count(),
        _scalar(database, CALLS),
    )
    for step in PAID_STEPS:
        count = len({item for item, name in steps if name == step})
        found += [] if count == articles else [f"{step}: {count} of {articles} articles"]
    return found + ([] if paid <= calls else [f"{paid} requests were paid for, {calls} recorded"])


def _rows(database: Database, query: TextClause) -> list[tuple[object, ...]]:
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(query)]


def _scalar(database: Database, query: TextClause) -> int:
    with database.read() as connection:
        return int(connection.execute(query).scalar_one())


def _told_in(post: str) -> list[tuple[str, str]]:
    """Each article that a post leads to, with the title that it tells."""
    title = re.search(r"Bridge [0-9]+ opens", post)
    paths = re.findall(r"http://127\.0\.0\.1:[0-9]+(/articles/\S+)", post)
    return [(path, title[0] if title else post) for path in paths]


def _listed(mail: EmailMessage) -> list[str]:
    body = mail.get_body(("plain",))
    assert body is not None
    lines = body.get_content().splitlines()
    return [line.removeprefix("* ") for line in lines if line.startswith("* ")]
