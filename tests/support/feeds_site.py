"""A served workspace with feeds in every state: items that wait, were put off, are held or posted, hostile texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, update

from collectors.feeds.stored_items import NOON, add_feed, add_item
from support.page_site import HOSTILE
from support.web_client import Served, served_application
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.queries import steps
from tsuzuki.collectors.feeds.queries.steps import StepEnd
from tsuzuki.collectors.feeds.tables import PreparationStep, WaitingState
from tsuzuki.collectors.feeds.tables import items as items_table

FILE = """\
feeds:
  private_hosts: [127.0.0.1]
  models:
    gemini: {provider: extractive}
  budget: {requests_per_day: 500, tokens_per_day: 200000}
  accounts:
    default: {type: file, path: posts.jsonl}
jobs:
  bot:
    type: feeds
    schedule: every 15m
    feeds:
      news: {url: "https://news.example/feed"}
      held: {url: "https://held.example/feed", hold: true}
  press:
    type: feeds
    on_event: look
    feeds:
      broken: {url: "https://broken.example/feed"}
"""
LATER = NOON + timedelta(days=400)
SUMMARY = "The city opens its records.\nThey can be read from Monday on."
READY, HELD, DEFERRED, POSTED, GIVEN_UP, LEFT_OUT, HOSTILE_ITEM = range(1, 8)
"""Ids of the items."""


@contextmanager
def feeds_site(folder: Path) -> Iterator[Served]:
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    with served_application(folder, fixed=False) as served:
        served.application.jobs.apply()
        with served.application.service("feeds").items._database.write() as connection:
            _make_items(connection)
        yield served


def _make_items(connection: Connection) -> None:
    news = add_feed(connection, title="City news", good_at=NOON, first_good_at=NOON, new_at=NOON)
    held = add_feed(connection, "held", title=HOSTILE, good_at=NOON, first_good_at=NOON)
    bad = {"failures": 3, "failing_since": NOON, "error": f"404 {HOSTILE}", "job_name": "press"}
    add_feed(connection, "broken", **bad)
    add_item(connection, news)
    item = add_item(
        connection, held, ItemState(status=ItemStatus.PENDING), waiting=WaitingState.APPROVAL
    )
    put_off = ItemState(status=ItemStatus.DEFERRED, reason=ItemReason.API_FAILED, retry_count=2)
    add_item(connection, news, put_off, waiting=WaitingState.BACKOFF, not_before=LATER)
    done = [
        add_item(connection, news, ItemState(status=ItemStatus.PROCESSED, reason=reason))
        for reason in (ItemReason.NONE, ItemReason.RETRY_LIMIT_EXCEEDED, None)
    ]
    hostile = add_item(connection, news, put_off, waiting=WaitingState.BACKOFF, not_before=LATER)
    changed = {"title": HOSTILE, "url": f"javascript:alert(1)//{HOSTILE}"}
    connection.execute(update(items_table).where(items_table.c.id == hostile).values(changed))
    for item_id in (item, done[0], hostile):
        _record_steps(connection, item_id)


def _record_steps(connection: Connection, item_id: int) -> None:
    results = {
        PreparationStep.DOWNLOAD: {"characters": 1240, "notes": []},
        PreparationStep.SCREENING: {"verdict": "worth", "why": f"It is new. {HOSTILE}"},
        PreparationStep.SUMMARY: {"text": SUMMARY},
    }
    for step, result in results.items():
        paid = (
            {} if step is PreparationStep.DOWNLOAD else {"input_tokens": 900, "cost_micros": 1200}
        )
        end = StepEnd(result=result, is_paid=bool(paid), **paid)
        times = {"started_at": NOON, "now": NOON + timedelta(seconds=2)}
        steps.record(connection, item_id=item_id, run_id=1, step=step, end=end, **times)
