"""Guards that a soak can run without, to prove that it finds fault then (mutation testing).

A guard is patched in the processes that the soak starts, before the program runs; the product knows nothing of it.
Where two writes belong into one transaction, the patch does what a crash between them would leave.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any
from uuid import uuid4

from support.forked_program import PATCH_VARIABLE
from tsuzuki.collectors.books.queries import books, quota
from tsuzuki.collectors.books.queries import outbox as mails
from tsuzuki.collectors.codeindex.parsing.parsed_file import ParsedFile
from tsuzuki.collectors.codeindex.queries import files
from tsuzuki.collectors.commits import branch
from tsuzuki.collectors.commits.queries import pages
from tsuzuki.collectors.feeds.channels.mastodon import MastodonChannel
from tsuzuki.collectors.feeds.channels.protocol import Outgoing, Sent
from tsuzuki.collectors.feeds.posting.posting import RunPosting
from tsuzuki.collectors.feeds.queries import steps
from tsuzuki.outward.errors import SourceUnavailable
from tsuzuki.outward.outbox import Outbox, OutboxState
from tsuzuki.store.runs import ownership

LOST_FILE = "part_0.py"


class BrokenGuard(StrEnum):
    """By the function below that breaks it."""

    POSTS = "repeat_posts"
    MAILS = "repeat_mails"
    PAYMENTS = "pay_twice"
    BOOKS = "lose_books"
    COMMITS = "lose_commits"
    TOTALS = "count_twice"
    SYMBOLS = "lose_symbols"
    QUOTA = "exceed_quota"
    FENCE = "write_unfenced"


def broken_in(guard: BrokenGuard | None) -> dict[str, str]:
    """The variables of a process that runs without this guard."""
    return {} if guard is None else {PATCH_VARIABLE: f"{__name__}:{guard}"}


def repeat_posts() -> None:
    """A post whose answer was lost is sent again, under another key, without looking whether it is there."""
    send = MastodonChannel.send

    def send_anew(channel: MastodonChannel, post: Outgoing) -> Sent:
        return send(channel, replace(post, key=uuid4().hex))

    def look_nowhere(
        _channel: MastodonChannel, _post: Outgoing, *, others: Collection[str]
    ) -> Sent | None:
        return None

    _patch(MastodonChannel, "send", send_anew)
    _patch(MastodonChannel, "look_up", look_nowhere)


def repeat_mails() -> None:
    """A mail whose answer was lost is taken for one that was not sent."""
    move = Outbox.move

    def move_back(outbox: Outbox, *about: Any, after: OutboxState, **more: Any) -> bool:
        is_open = outbox is mails.OUTBOX and after is OutboxState.UNSETTLED
        return move(outbox, *about, after=OutboxState.INTENDED if is_open else after, **more)

    _patch(Outbox, "move", move_back)


def pay_twice() -> None:
    """What a model answered in an earlier run is not looked up. A run fails between an answer and its post, once in
    each process."""
    intend, failed = RunPosting.intend, []

    def fail_first(posting: RunPosting, *about: Any, **more: Any) -> Any:
        if failed:
            return intend(posting, *about, **more)
        failed.append(more)
        raise SourceUnavailable("cut off behind the answer")

    _patch(RunPosting, "intend", fail_first)
    _patch(steps, "of_item", lambda _connection, _item_id: [])


def lose_books() -> None:
    """The cursor is stored before the books of its page: a crash between them, once in each process."""
    _lose_first_page(books, "put_page", at=1)


def lose_commits() -> None:
    """The head of a branch is stored before its commits: a crash between them, once in each process."""
    _lose_first_page(branch, "store_page", at=2)


def count_twice() -> None:
    """The counts of a page are not added in the transaction that stores it, and again after a crash."""
    add_up = pages._add_up

    def add_again(*about: Any) -> None:
        add_up(*about)
        add_up(*about)

    _patch(pages, "_add_up", add_again)


def lose_symbols() -> None:
    """A file is stored as indexed before its symbols: a crash between them, with every version of one file."""
    put_files = files.put_files

    def put_some(connection: Any, batch: Sequence[ParsedFile], **more: Any) -> None:
        kept = [
            one._replace(symbols=(), references=()) if one.path == LOST_FILE else one
            for one in batch
        ]
        put_files(connection, kept, **more)

    _patch(files, "put_files", put_some)


def exceed_quota() -> None:
    """Calls are counted, and none is refused."""
    reserve = quota.reserve
    _patch(quota, "reserve", lambda *about, limit: reserve(*about, limit=1_000 * limit))


def write_unfenced() -> None:
    """A worker writes for a run without asking under which version and epoch it is stored."""
    _patch(ownership, "lock_if_owned", lambda *_about, **_more: True)


def _lose_first_page(place: Any, name: str, *, at: int) -> None:
    """The function stores nothing of the first page that it is given, and answers how much it was."""
    store, lost = getattr(place, name), []

    def lose(*about: Any, **more: Any) -> Any:
        page = about[at]
        if lost or not page:
            return store(*about, **more)
        lost.append(page)
        return len(page)

    _patch(place, name, lose)


def _patch(place: Any, name: str, function: Any) -> None:
    setattr(place, name, function)
