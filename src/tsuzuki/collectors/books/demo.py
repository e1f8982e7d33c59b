"""The books in `tsuzuki demo`: a search that uses up a day's quota at once, and its emails."""

from collections.abc import Mapping
from datetime import datetime

from tsuzuki.cli.demo.part import DemoContext, DemoPart, DemoServer
from tsuzuki.collectors.books.sandbox.demo_catalogue import demo_catalogue
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks
from tsuzuki.collectors.books.sandbox.smtp import MailServer
from tsuzuki.sandbox.server import StandIn

CALLS_PER_MINUTE = 10
HOURS = 24
EASTERNMOST_HOURS = 14
SECTION = """\
books:
  base_url: http://127.0.0.1:{books}/books/v1
  api_key: ${{SANDBOX_BOOKS_KEY:-sandbox-key}}
  daily_limit: 8                # calls per day; the search below needs 13
  quota_zone: {quota_zone}       # its day ends soon after the first start, so you can see the search continue
  mail:
    host: 127.0.0.1
    port: {mail}
    encryption: none
    from: Tsuzuki <tsuzuki@localhost>
    to: [you@localhost]
"""
JOB = """\
  new-books:
    description: Follow a search and email new books
    type: books
    queries: ["subject:astronomy"]
    max_per_run: 400
    mail_limit: 10
    schedule: {{every: 15m}}
"""


def zone_near_midnight(now: datetime) -> str:
    """A zone whose day ends at the next full hour."""
    ahead = HOURS - 1 - now.hour
    if ahead > EASTERNMOST_HOURS:
        ahead -= HOURS
    # The signs of these names are those of POSIX: west is positive.
    return "Etc/GMT" if ahead == 0 else f"Etc/GMT{-ahead:+d}"


def _values(context: DemoContext) -> Mapping[str, str]:
    return {"quota_zone": zone_near_midnight(context.clock.now())}


def _servers(_context: DemoContext) -> tuple[DemoServer, ...]:
    books = GoogleBooks(demo_catalogue(), calls_per_minute=CALLS_PER_MINUTE)
    return (
        DemoServer(
            name="books",
            usual_port=8422,
            make=lambda port: StandIn(books, port=port),
            each_minute=books.new_minute,
        ),
        DemoServer(name="mail", usual_port=8423, make=lambda port: MailServer(port=port)),
    )


DEMO = DemoPart(
    section=SECTION,
    job=JOB,
    values=_values,
    servers=_servers,
    run_at_start=("new-books",),
    look_at={"/books": "a search that used up its quota, and when it continues"},
)
