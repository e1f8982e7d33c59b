"""Feeds over HTTP: how each fares, its items page by page, what is decided about them, and what is spent."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import delete, insert

from collectors.feeds.stored_items import NOON, add_feed, add_item
from support.web_client import Client, Served, served_application
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.tables import WaitingState, items, waiting_items

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
    assert "first run after 2027-12-07" in told["next"][0]
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


def test_work_on_a_job_is_a_run_with_its_arguments(client: Client) -> None:
    fetch = client.post("feeds/jobs/bot/fetch")
    assert (fetch.status, fetch.json["arguments"]) == (201, {"process": False})
    assert fetch.headers["location"] == f"/api/v1/runs/{fetch.json['id']}"
    first = client.post("feeds/jobs/bot/process", {"items": 2}, Idempotency_Key="process-1")
    again = client.post("feeds/jobs/bot/process", {"items": 2}, Idempotency_Key="process-1")
    assert first.json["arguments"] == {"fetch": False, "items": 2}
    assert first.json["id"] == again.json["id"]
    for verb in ("fetch", "process"):
        assert client.post(f"feeds/jobs/command/{verb}").code == "not_a_feeds_job"
    started = client.get(f"audit?object_type=run&object_id={first.json['id']}").json["items"]
    assert [(one["action"], one["actor"]) for one in started] == [("run.start", "user:admin")]


def test_what_a_run_would_draw_and_post_is_shown(client: Client) -> None:
    planned = client.get("feeds/jobs/bot/plan?limit=2").json["items"]
    assert [one["position"] for one in planned] == [1, 2]
    shown = client.get("feeds/items/1/preview").json
    assert (shown["id"], shown["post"], shown["verdict"]) == (1, None, None)
    assert client.get("feeds/items/99/preview").code == "item_unknown"


def test_items_are_requeued_by_reason_after_a_look(client: Client, served: Served) -> None:
    with served.application.service("feeds").items._database.write() as connection:
        news = add_feed(connection, "other")
        given_up = ItemState(
            status=ItemStatus.PROCESSED, reason=ItemReason.RETRY_LIMIT_EXCEEDED, retry_count=6
        )
        ids = {add_item(connection, news, given_up) for _ in range(2)}
    body = {"reason": "retry_limit_exceeded", "dry_run": True}
    look = client.post("feeds/items/requeue", body)
    assert (look.status, look.json["count"]) == (200, 2), look.body
    assert {item["status"] for item in look.json["items"]} == {"processed"}
    done = client.post("feeds/items/requeue", {"reason": "retry_limit_exceeded"}).json
    assert {item["id"] for item in done["items"]} == ids
    assert {item["status"] for item in done["items"]} == {"unprocessed"}
    assert client.post("feeds/items/requeue", {"reason": "retry_limit_exceeded"}).json["count"] == 0


def test_a_feed_is_added_to_the_file_shown_and_removed(client: Client, served: Served) -> None:
    path = "feeds/jobs/bot/feeds"
    body = {"name": "press", "url": "https://press.example/feed", "settings": {"language": "ja"}}
    assert client.as_("operator").post(path, body).status == 403
    added = client.post(path, body)
    assert added.status == 201, added.body
    assert client.post(path, body).code == "feed_exists"
    shown = client.get(added.headers["location"]).json
    assert (shown["settings"]["language"], shown["url"]) == ("ja", "https://press.example/feed")
    file = served.application.configuration.file
    assert file
    assert "press.example" in file.read_text(encoding="utf-8")
    assert client.delete(added.headers["location"]).status == 204
    assert "press.example" not in file.read_text(encoding="utf-8")
    wrong = client.post(path, {**body, "settings": {"langage": "ja"}})
    assert (wrong.status, wrong.json["problems"][0]["where"]) == (422, "body.settings"), wrong.body
    assert client.get(f"{path}/nothing").code == "feed_unknown"


def test_an_item_that_another_program_has_stored_is_shown_without_a_feed(served: Served) -> None:
    row = {"title": "By hand", "status": 0, "retry_count": 0, "published_at": NOON}
    row |= {"created_at": NOON, "last_checked_at": NOON, "url": "https://by-hand.example"}
    with served.application.service("feeds").items._database.write() as connection:
        added = connection.execute(insert(items).values(row).returning(items.c.id)).scalar_one()
    client = served.client
    assert client.get(f"feeds/items/{added}").json["feed"] is None
    assert added in listed(client, "limit=50")
    assert client.get(f"feeds/items/{added}/explain").status == 200
    with served.application.service("feeds").items._database.write() as connection:
        connection.execute(delete(waiting_items).where(waiting_items.c.item_id == added))
        connection.execute(delete(items).where(items.c.id == added))
