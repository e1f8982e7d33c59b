"""Feeds: fetched from a stand-in of a web site; and their items, with stand-ins of a model and of two receivers."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from support.shared_document_processes import share_document_processes
from tsuzuki.collectors.feeds.options import FeedsOptions, FeedsSection
from tsuzuki.collectors.feeds.plugin import COLLECTOR
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedSite
from tsuzuki.collectors.feeds.sandbox.gemini import Gemini
from tsuzuki.collectors.feeds.sandbox.mastodon import mastodon
from tsuzuki.collectors.feeds.tables import COMPONENT
from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

from .case import Case

KEY = "k3y-of-the-conforming"
TOKEN = "t0ken-of-the-conforming"
COOKIE = "c00kie-of-the-conforming"
HEADER = "h3ader-of-the-conforming"
SIGNING = "s3cret-of-the-conforming"
QUERY = "qu3ry-of-the-conforming"
FEED_COUNT = 4
ITEM_COUNT = 2
POSTS = "posts.jsonl"
TIMES = frozenset(
    {
        "tsuzuki_feeds.first_good_at",
        "tsuzuki_feeds.tried_at",
        "tsuzuki_feeds.good_at",
        "tsuzuki_feeds.full_at",
        "tsuzuki_feeds.new_at",
        "tsuzuki_feeds.held_by_run",
        "items.id",  # an interrupted transaction uses up ids
        "items.created_at",
        "items.last_checked_at",
        "tsuzuki_waiting_items.item_id",
        "tsuzuki_waiting_items.order_at",
        "tsuzuki_waiting_items.held_by_run",
        "tsuzuki_waiting_items.drawn_by_run",
        "tsuzuki_item_details.item_id",
        "tsuzuki_item_fingerprints.item_id",
        "tsuzuki_feed_items.item_id",
        "tsuzuki_feed_items.first_seen_at",
    }
)


def _every_column(*tables: str) -> frozenset[str]:
    columns = {table.name: table.c.keys() for table in COMPONENT.metadata.sorted_tables}
    return frozenset(f"{table}.{column}" for table in tables for column in columns[table])


class FeedsCase(Case):
    """Several feeds, whose items wait."""

    collector = COLLECTOR
    pages = FEED_COUNT
    volatile = TIMES
    secrets = (COOKIE, HEADER)

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        site = FeedSite()
        for number in range(self.pages):
            feed = site.add_feed(Feed(path=f"/{number}.xml", title=f"Feed {number}"))
            text = f"Bridge {number} was opened today. The mayor came, and so did many people."
            site.add_article(feed, Article(title=f"Bridge {number}", text=text))
        self._site = site.serve()
        self._site.start()
        self.options = self._job_options()

    def _job_options(self) -> dict[str, Any]:
        feeds = {
            f"feed-{number}": {
                "url": f"{self._site.url}/{number}.xml",
                "request": "conforming",
                "backfill": "all",
            }
            for number in range(self.pages)
        }
        said = FeedsOptions.model_validate({"feeds": feeds, "items_per_run": 0})
        return said.model_dump(mode="json")

    def section(self) -> BaseModel:
        return FeedsSection.model_validate(self._said())

    def _said(self) -> dict[str, Any]:
        request = {"headers": {"X-Access": HEADER}, "cookies": {"session": COOKIE}}
        return {
            "requests": {"conforming": request},
            "private_hosts": ["127.0.0.1"],
            "concurrency": 1,  # in the same order each time
            "request_timeout": 30,
        }

    def fail_with_secrets(self) -> None:
        words = f"session={COOKIE} {HEADER}"
        self._site.faults.add(StandInFault(status=503, body=words, headers={"X-Said": words}))
        self._site.faults.add(StandInFault(status=302, headers={"Location": f"/?session={COOKIE}"}))
        self._site.faults.add(StandInFault(status=403, body=words))
        self._site.faults.add(StandInFault(status=200, body=words, times=None))

    def hang(self) -> None:
        self._site.faults.add(StandInFault(kind=StandInFaultKind.HANG))

    def is_hanging(self) -> bool:
        return self._site.faults.held > 0

    def release(self) -> None:
        self._site.faults.release()

    def close(self) -> None:
        self._site.stop()


class ItemsCase(FeedsCase):
    """One feed, whose items are screened, summarised and posted: to a file, and where secrets are looked for to a
    Mastodon account and a webhook."""

    pages = ITEM_COUNT
    first_page = 8
    volatile = (
        TIMES
        | _every_column(
            "tsuzuki_feed_budget_use",  # what a killed run asked is paid for
            "tsuzuki_item_steps",
        )
        | {
            "tsuzuki_feed_posts.id",
            "tsuzuki_feed_posts.item_id",
            "tsuzuki_feed_posts.created_at",
            "tsuzuki_feed_posts.changed_at",
            "tsuzuki_feed_posts.sent_by_run",
            "tsuzuki_feed_posts.looks",  # what a killed run sent is looked for
            "tsuzuki_feed_posts.absences",
            "tsuzuki_feed_posts.next_look_at",
            "tsuzuki_feed_accounts.limits_read_at",
        }
    )
    secrets = (KEY, TOKEN, COOKIE, HEADER, SIGNING, QUERY)

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        share_document_processes(monkeypatch)
        self._model = StandIn(Gemini(key=KEY))
        self._mastodon = StandIn(mastodon(token=TOKEN))
        self._hook = StandIn(_accept)
        self._receivers = [self._model, self._mastodon, self._hook]
        for one in self._receivers:
            one.start()
        self._accounts: dict[str, Any] = {
            name: {"type": "file", "path": POSTS} for name in ("even", "odd")
        }

    def _job_options(self) -> dict[str, Any]:
        said = super()._job_options()
        for number, feed in enumerate(said["feeds"].values()):
            feed |= {"account": "odd" if number % 2 else "even", "fetch_every": 3_600}
        return {**said, "items_per_run": ITEM_COUNT}

    def _said(self) -> dict[str, Any]:
        model = {"provider": "gemini", "base_url": self._model.url, "api_key": KEY, "timeout": 30}
        return {**super()._said(), "models": {"default": model}, "accounts": self._accounts}

    def prepare(self, database: Database) -> None:
        (self.workspace / POSTS).unlink(missing_ok=True)

    def use_every_secret(self) -> None:
        self._accounts = {
            "even": {
                "type": "mastodon",
                "base_url": self._mastodon.url,
                "access_token": TOKEN,
            },
            "odd": {
                "type": "webhook",
                "url": f"{self._hook.url}/posts?token={QUERY}",
                "secret": SIGNING,
            },
        }

    def fail_with_secrets(self) -> None:
        error = {"code": 503, "message": f"no key={KEY} {KEY}", "status": "UNAVAILABLE"}
        self._model.faults.add(StandInFault(status=503, body=json.dumps({"error": error})))
        refusal = json.dumps({"error": f"Bearer {TOKEN}: {TOKEN}"})
        self._mastodon.faults.add(StandInFault(method="POST", status=422, body=refusal))
        words = f"?token={QUERY} {QUERY} {SIGNING}"
        self._hook.faults.add(StandInFault(status=500, body=words, times=None))

    def hang(self) -> None:
        self._site.faults.add(StandInFault(path="/articles/*", kind=StandInFaultKind.HANG))

    def close(self) -> None:
        super().close()
        for one in self._receivers:
            one.stop()


def _accept(_request: StandInRequest) -> Response:
    return Response(status=204)
