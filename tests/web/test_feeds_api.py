"""Feeds over HTTP: how each fares, its items page by page, what is decided about them, and what is spent."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from collectors.feeds.stored_items import NOON, add_feed, add_item
from support.web_client import Client, Served, served_application
from tsuzuki.collectors.feeds.items import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.tables import WaitingState

FILE = """\
feeds:
  accounts:
    default: {type: file, path: posts.jsonl}
jobs:
  bot:
    type: feeds
    on_event: look
    feeds:
      news: {url: "https://news.example/feed"}
      held: {url: "https://held.example/feed", hold: true}
  command: {command: ["true"]}
"""
LATER = NOON + timedelta(days=400)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    with served_application(folder) as served:
        served.application.jobs.apply()
        with served.application.service("feeds").items._database.write() as connection:
            moved_to = "https://user:secret@news.example/moved"
            news = add_feed(connection, moved_to=moved_to)
            held = add_feed(connection, "held")
            for _ in range(3):
                add_item(connection, news)
            put_off = ItemState(
                status=ItemStatus.DEFERRED, reason=ItemReason.API_FAILED, retry_count=2
            )
            add_item(connection, news, put_off, waiting=WaitingState.BACKOFF, not_before=LATER)
            pending = ItemState(status=ItemStatus.PENDING)
            add_item(connection, held, pending, waiting=WaitingState.APPROVAL)
            posted = ItemState(status=ItemStatus.PROCESSED, reason=ItemReason.NONE)
            add_item(connection, held, posted)
        yield served


def listed(client: Client, query: str) -> list[int]:
    answer = client.get(f"feeds/items?{query}")
    assert answer.status == 200, answer.body
    return [item["id"] for item in answer.json["items"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [6, 5, 4, 3, 2, 1]),
        ("feed=held", [6, 5]),
        ("feed=bot/news", [4, 3, 2, 1]),
        ("job=bot&status=deferred&status=pending", [5, 4]),
        ("reason=api_failed&reason=none", [6, 4]),
        ("waiting=approval", [5]),
        ("search=ARTICLE%203", [3]),
        ("search=%25", []),
    ],
)
def test_items_are_narrowed_and_counted(client: Client, query: str, expected: list[int]) -> None:
    assert listed(client, query) == expected
    counted = client.get(f"feeds/items?{query}&count=true&limit=1").json["count"]
    assert counted == {"value": len(expected), "exact": True}


def test_every_item_comes_once(client: Client) -> None:
    page = client.get("feeds/items?limit=4&job=bot").json
    rest = client.get(f"feeds/items?limit=4&job=bot&cursor={page['next_cursor']}").json
    assert [item["id"] for item in page["items"] + rest["items"]] == [6, 5, 4, 3, 2, 1]
    assert rest["next_cursor"] is None


def test_feeds_are_listed_with_their_items_and_without_secrets(client: Client) -> None:
    held, news = client.get("feeds?job=bot").json["items"]
    assert (held["name"], held["approval"], held["posted"]) == ("held", 1, 1)
    assert (news["unprocessed"], news["deferred"]) == (3, 1)
    assert news["moved_to"] == "https://user:***@news.example/moved"
    assert client.get("feeds?job=command").code == "not_a_feeds_job"


def test_an_item_is_explained(client: Client) -> None:
    told = client.get("feeds/items/4/explain").json
    assert (told["outcome"], told["waiting"], told["steps"]) == ("api failed", "backoff", [])
    assert "found" in told["history"][0]
    assert "drawn by the first run after" in told["next"][0]
    for path in ("feeds/items/99", "feeds/items/99/explain", f"feeds/items/{2**63 - 1}"):
        assert client.get(path).code == "item_unknown"


def test_a_held_item_is_approved_and_a_deferred_one_requeued(
    client: Client, served: Served
) -> None:
    assert client.post("feeds/items/1/approve").code == "not_held"
    assert client.post("feeds/items/5/approve", {"unsettled": "was_sent"}).code == "post_settled"
    approved = client.post("feeds/items/5/approve")
    assert (approved.status, approved.json["waiting"]) == (200, "ready")
    requeued = client.post("feeds/items/4/requeue")
    assert (requeued.status, requeued.json["waiting"]) == (200, "ready")
    assert client.post("feeds/items/6/requeue").code == "item_posted"
    entries = served.application.audit.find(object_type="feed item", object_id="5")
    assert [(entry.action, entry.actor) for entry in entries] == [
        ("feeds.item.approve", "user:admin")
    ]


def test_the_budget_is_that_of_all_models_and_feeds(client: Client) -> None:
    scopes = {one["scope"]: one for one in client.get("feeds/budget").json["items"]}
    assert {one["requests"] for one in scopes.values()} == {0}
    assert any(scope.startswith("feed bot/") for scope in scopes)
