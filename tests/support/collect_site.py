"""A served workspace with commits and books in it: real collections of real repositories, and hostile texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from support.git_histories import straight
from support.page_site import HOSTILE
from support.web_client import Served, served_application
from tsuzuki.collectors.books.book import Book
from tsuzuki.collectors.books.queries import books, cursors, outbox
from tsuzuki.collectors.books.query_set import compute_query_set_hash
from tsuzuki.collectors.commits.queries import targets
from tsuzuki.collectors.commits.queries.pages import store_page
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sources.source import Commit
from tsuzuki.outward.outbox import OutboxState

BRANCH = "<img/src=x>"
"""A name that git takes."""
QUERIES = ["subject:astronomy", "inauthor:<b>Ada</b>"]
FILE = """\
jobs:
  novelties: {type: books, queries: ["subject:astronomy", "inauthor:<b>Ada</b>"]}
  botany: {type: books, queries: ["subject:botany"]}
  command: {command: ["true"]}
"""
AUTHORS = ("Ada Lovelace", HOSTILE, "森 愛子", "Grace Hopper")


@contextmanager
def collect_site(folder: Path, *, sections: str = "") -> Iterator[Served]:
    """Served to its owner, without sign-in. One collection has completed with a target that failed."""
    (folder / "tsuzuki.yaml").write_text(FILE + sections, encoding="utf-8")
    with served_application(folder, fixed=False) as served:
        served.application.jobs.apply()
        _collect_commits(served, folder)
        _put_books(served)
        yield served


def _collect_commits(served: Served, folder: Path) -> None:
    service = served.application.service("commits")
    for name in ("engine", "site"):
        straight(folder / f"{name}.git", 4)
        service.commits.add_target(str(folder / f"{name}.git"), "main", base=folder)
    (folder / "site.git").rename(folder / "gone.git")
    started = service.collections.start()
    served.application.local_engine.start()
    served.application.runs.wait(started.job_run_id, timeout_seconds=120)
    served.application.local_engine.stop()
    (view, *_) = service.commits.targets()
    with service.commits._database.write() as connection:
        target = Target(view.project_id, BRANCH)
        targets.follow(connection, target)
        store_page(connection, target, [_commit(number) for number in range(1, 120)])


def _commit(number: int) -> Commit:
    author = AUTHORS[number % 7 % 4]
    moment = f"{2025 + number % 2}-{number % 12 + 1:02}-{number % 28 + 1:02}T00:00:00Z"
    address = f"author{number % 7}@example.org"
    return Commit(f"{number:040x}", author, address, moment, number, number // 2)


def _put_books(served: Served) -> None:
    now = datetime.now(UTC)
    found = [
        Book(
            f"v{number}",
            f"Stars, volume {number}" if number else HOSTILE,
            authors=("Ada Lovelace", HOSTILE) if number == 0 else ("Ada Lovelace",),
            isbn13="9784873119038" if number == 1 else None,
            publisher="Observatory Press",
            published_date="2026-10",
            description="About stars. " * 20,
            info_link="javascript:alert(1)" if number == 0 else f"https://books.example/{number}",
        )
        for number in range(8)
    ]
    with served.application.service("books")._database.write() as connection:
        for number, book in enumerate(found):
            seen = now - timedelta(hours=number)
            books.put_page(connection, [(number, book)], job_name="novelties", run_id=1, now=seen)
        key = compute_query_set_hash(QUERIES)
        cursors.upsert_collect_cursor(connection, "novelties", key, 8, False)
        cursors.upsert_collect_cursor(connection, "novelties", "0" * 64, 40, True)
        for number, end in enumerate((OutboxState.SENT, OutboxState.UNSETTLED), 1):
            mail = outbox.intend(
                connection,
                job_name="novelties",
                message_id=f"<{number}@tsuzuki>",
                selected=found[number : number + 1],
                now=now,
            )
            for before, after in pairwise((OutboxState.INTENDED, OutboxState.SENDING, end)):
                outbox.OUTBOX.move(connection, mail.id, before=before, after=after, now=now)
