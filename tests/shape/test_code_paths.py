"""The code paths in ARCHITECTURE.md are the calls that really happen, in that order."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from support.workspace import Workspace
from tsuzuki.collectors.books.sandbox.google_books import GoogleBooks, volumes
from tsuzuki.collectors.feeds.sandbox.feed_site.demo import make_demo
from tsuzuki.collectors.feeds.sandbox.gemini import Gemini
from tsuzuki.collectors.feeds.sandbox.mastodon import mastodon
from tsuzuki.sandbox.server import StandIn

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tsuzuki"
STATION = re.compile(r"^\d+\. `([\w/]+\.py): ([\w.]+)` — .+$", re.MULTILINE)
Station = tuple[str, str]


def stations(title: str) -> list[Station]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = STATION.findall(section)
    assert found
    assert len(found) == len(re.findall(r"^\d+\. ", section, flags=re.MULTILINE))
    return found


@contextmanager
def traced(wanted: list[Station]) -> Iterator[list[Station]]:
    """Calls of these functions in all threads, in the order of their start."""
    by_code = {(str(SOURCE / file), function): (file, function) for file, function in wanted}
    calls: list[Station] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code
            station = by_code.get((code.co_filename, code.co_qualname))
            if station is not None:
                calls.append(station)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type] -- its stub knows no None


def missing_in_order(wanted: list[Station], calls: list[Station]) -> list[Station]:
    """Stations that were not called after the ones before them."""
    remaining = iter(calls)
    return [one for one in wanted if one not in remaining]


@pytest.fixture
def workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Workspace]:
    """A workspace with a command, a book search and a feed, and stand-ins for the services."""
    found = Workspace(tmp_path, capsys)
    with (
        StandIn(GoogleBooks(volumes(120))) as books,
        make_demo(traps=False).serve() as site,
        StandIn(Gemini()) as gemini,
        StandIn(mastodon()) as posts,
    ):
        found.file.write_text(
            f"""
books: {{base_url: "{books.url}/books/v1", api_key: "${{KEY:-sandbox-key}}"}}
feeds:
  private_hosts: [127.0.0.1]
  models:
    default: {{provider: gemini, base_url: "{gemini.url}", api_key: "${{KEY:-sandbox-key}}"}}
  accounts:
    default: {{type: mastodon, base_url: "{posts.url}", access_token: "${{KEY:-sandbox-token}}"}}
jobs:
  hello: {{command: ["true"]}}
  novelties: {{type: books, queries: [python], max_per_run: 120}}
  bot:
    type: feeds
    feeds: {{town: {{url: "{site.url}/en/feed.xml", backfill: all}}}}
"""
        )
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "job"),
    [
        ("The path of a run", "hello"),
        ("The path of a page", "novelties"),
        ("The path of an item", "bot"),
    ],
)
def test_a_run_passes_the_stations_of_its_path_in_order(
    workspace: Workspace, title: str, job: str
) -> None:
    wanted = stations(title)
    workspace.ok("job", "apply")
    with traced(wanted) as calls:
        workspace.ok("job", "run", job)
        workspace.ok("run-due")
    assert missing_in_order(wanted, calls) == [], calls


def test_a_station_that_comes_too_early_is_missing() -> None:
    first, second = ("a.py", "one"), ("b.py", "two")
    assert missing_in_order([first, second], [first, second, first]) == []
    assert missing_in_order([first, second], [second, first]) == [second]
