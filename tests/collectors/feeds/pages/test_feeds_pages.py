"""Feeds: how each fares, the funnel, items with verdict and post; approve, requeue, fetch and process."""

import html
import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import delete, insert

from collectors.feeds.stored_items import NOON, add_item
from support.feeds_site import (
    DEFERRED,
    GIVEN_UP,
    HELD,
    HOSTILE_ITEM,
    LEFT_OUT,
    POSTED,
    READY,
    feeds_site,
)
from support.page_checks import (
    HEIGHT,
    MIDDLE,
    Layouts,
    Visitor,
    check_page,
    check_twin,
    visitor,
)
from support.page_site import HOSTILE
from support.web_client import Served
from tsuzuki.collectors.feeds.channels.protocol import PostBody
from tsuzuki.collectors.feeds.items.item import ItemState, ItemStatus
from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.queries import feeds, posts
from tsuzuki.collectors.feeds.tables import PostKind, WaitingState, feed_posts, items, waiting_items
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.services.jobs import parse_mapping
from tsuzuki.services.runs import Request
from tsuzuki.web.pages.route import FORM_TYPE


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with feeds_site(tmp_path_factory.mktemp("workspace")) as served:
        yield served


def post(site: Served, path: str, form: str = "") -> tuple[int, str]:
    headers = {"Content-Type": FORM_TYPE, "Origin": site.client.url}
    answer = site.client.as_(None).request("POST", path, raw=form.encode(), headers=headers)
    return answer.status, answer.headers.get("location", "")


@pytest.mark.parametrize(
    "path",
    ["/feeds", "/feeds/items?reason=api_failed&feed=news", f"/feeds/items/{HELD}", "/feeds/add"],
)
def test_each_page_of_feeds_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_every_column_of_the_items_can_be_read_at_a_middle_width(person: Visitor) -> None:
    person.page.set_viewport_size({"width": MIDDLE, "height": HEIGHT})
    check_page(person.visit("/feeds/items"), with_axe=False)


def test_every_number_leads_to_what_it_counts(person: Visitor) -> None:
    page = person.open("/feeds")
    links = page.locator(".funnel ol a, .reasons li > a:first-child, td.number a").all()
    assert len(links) >= 4 + 5 + 9
    for link in links:
        shown = re.findall(r"\d+", link.inner_text())[0]
        listed = check_twin(person, str(link.get_attribute("href")))
        assert listed["count"]["value"] == int(shown), link.get_attribute("href")


def test_feeds_are_narrowed_to_those_that_fail(person: Visitor) -> None:
    page = person.open("/feeds")
    page.get_by_role("link", name="Failing 1").click()
    expect(page).to_have_url(re.compile(r"/feeds\?health=failing$"))
    expect(page.locator("tr[data-href]", has_text="broken")).to_be_visible()
    assert [feed["name"] for feed in check_twin(person, "/feeds?health=failing")["feeds"]] == [
        "broken"
    ]
    page.get_by_role("link", name="broken").click()
    expect(page.get_by_role("alert")).to_contain_text("404")


def test_a_filter_is_a_chip_and_an_unknown_feed_is_told(person: Visitor) -> None:
    page = person.open("/feeds/items?feed=nwes&status=deferred")
    expect(page.get_by_role("alert")).to_contain_text("news")
    page.locator(".chip", has_text="nwes").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"items\?status=deferred$"))
    expect(page.locator("#items tbody tr")).to_have_count(2)


def test_an_item_shows_verdict_tokens_cost_and_post(person: Visitor) -> None:
    page = person.open(f"/feeds/items/{HELD}")
    expect(page.locator(".post-preview")).to_contain_text("They can be read from Monday on.")
    expect(page.locator("main .facts")).to_contain_text("1,800")
    expect(page.locator("main .facts")).to_contain_text("$0.0024")
    expect(page.locator("main .facts")).to_contain_text("Worth posting")


def test_the_steps_of_an_item_are_told_in_japanese(site: Served) -> None:
    page = site.client.as_(None).get(f"/feeds/items/{HELD}", Accept_Language="ja").body.decode()
    steps = page[page.index('id="steps"') :].partition(">")[2].partition("</table>")[0]
    shown = re.sub(r"<(code|time|bdi)\b.*?</\1>|<[^>]+>", "", steps, flags=re.DOTALL)
    assert "投稿対象" in shown
    assert re.findall(r"[A-Za-z]{3,}", shown) == []
    assert re.search(r"1240</bdi> 文字", steps)


def test_an_item_that_another_program_has_stored_is_shown_without_a_feed(site: Served) -> None:
    row = {"title": "By hand", "status": 0, "retry_count": 0, "published_at": NOON}
    row |= {"created_at": NOON, "last_checked_at": NOON, "url": "https://by-hand.example"}
    database = site.application.service("feeds").items._database
    with database.write() as connection:
        added = connection.execute(insert(items).values(row).returning(items.c.id)).scalar_one()
    for path in ("/feeds/items", f"/feeds/items/{added}"):
        page = site.client.as_(None).get(path)
        assert page.status == 200
        assert "By hand" in page.body.decode()
    with database.write() as connection:
        connection.execute(delete(waiting_items).where(waiting_items.c.item_id == added))
        connection.execute(delete(items).where(items.c.id == added))


def test_what_comes_from_outside_does_no_harm(person: Visitor) -> None:
    for path in (
        f"/feeds/items/{HOSTILE_ITEM}",
        "/feeds",
        "/feeds/items",
        "/feeds/jobs/bot/feeds/held",
    ):
        page = person.open(path)
        assert page.locator("main img").count() == 0
        expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>")
        assert page.locator("a[href^='javascript']").count() == 0
        assert HOSTILE in json.dumps(check_twin(person, path), ensure_ascii=False).replace(
            '\\"', '"'
        )


def test_a_held_post_is_approved_in_a_dialog(person: Visitor, site: Served) -> None:
    page = person.open(f"/feeds/items/{HELD}")
    page.get_by_role("link", name="Approve …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text(f"Approve the post of item {HELD}?")
    dialog.get_by_role("button", name="Approve 1 post").click()
    expect(page.locator("#flash")).to_have_text(f"Item {HELD} will be posted by the next run.")
    entry = site.application.audit.find(limit=1)[0]
    assert (entry.action, entry.object_id) == ("feeds.item.approve", str(HELD))
    assert entry.actor.startswith("web:")
    assert post(site, f"/feeds/items/{HELD}/approve", "decision=approve")[0] == 409


def test_items_with_a_reason_are_requeued_unless_they_became_more(
    chromium: Browser, site: Served
) -> None:
    with visitor(chromium, site.client.url, javascript=False) as person:
        page = person.open("/feeds")
        page.get_by_role("link", name="Requeue: model failed").click()
        expect(page.get_by_role("heading", name="Requeue 2 items?")).to_be_visible()
        expect(page.locator(".samples li")).to_have_count(2)
        assert post(site, "/feeds/requeue", "reason=api_failed&count=1")[0] == 409
        page.get_by_role("button", name="Requeue 2 items").click()
        expect(page.locator("#flash")).to_have_text("Items requeued: 2.")
    assert (
        site.client.as_(None).get(f"/feeds/items/{DEFERRED}.json").json["item"]["waiting"]
        == "ready"
    )


def test_one_item_is_requeued_and_what_was_posted_is_refused(site: Served) -> None:
    client = site.client.as_(None)
    for item_id in (READY, POSTED):
        assert not client.get(f"/feeds/items/{item_id}.json").json["can_requeue"]
        assert post(site, f"/feeds/items/{item_id}/requeue")[0] == 409
    assert b"was posted" in client.get(f"/feeds/items/{POSTED}/requeue").body
    for item_id in (GIVEN_UP, LEFT_OUT):
        assert post(site, f"/feeds/items/{item_id}/requeue") == (303, f"/feeds/items/{item_id}")


def test_a_job_is_fetched_and_processed_by_runs(site: Served) -> None:
    client = site.client.as_(None)
    assert client.get("/feeds/jobs/bot/fetch.json").json == {"job": "bot", "feeds": 2}
    assert client.get("/feeds/jobs/bot/process.json").json["ready"] >= 1
    for verb, form, arguments in (
        ("fetch", "", {"process": False}),
        ("process", "items=", {"fetch": False}),
        ("process", "items=3", {"fetch": False, "items": 3}),
    ):
        status, place = post(site, f"/feeds/jobs/bot/{verb}", form)
        assert status == 303, (verb, form)
        assert client.get(f"{place}.json").json["run"]["arguments"] == arguments
    assert post(site, "/feeds/jobs/bot/process", "items=0")[0] == 422


def test_a_feed_is_removed_unless_it_is_the_last(site: Served) -> None:
    assert post(site, "/feeds/jobs/press/feeds/broken/remove")[0] == 409
    assert post(site, "/feeds/jobs/bot/feeds/held/remove") == (303, "/feeds?job=bot")
    feeds = site.client.as_(None).get("/feeds.json?job=bot").json["feeds"]
    assert {feed["name"]: feed["health"] for feed in feeds}["held"] == "removed"


def test_a_feed_is_looked_at_and_then_added_to_the_file(person: Visitor, site: Served) -> None:
    page = person.open("/feeds")
    page.get_by_role("link", name="Add feed …").click()
    page.get_by_label("Address", exact=True).fill("https://city.example/feed")
    page.get_by_label("Name").fill("city")
    page.get_by_role("textbox", name="Other keys").fill(
        "language: ja\nscreening_prompt: What's new?"
    )
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".job-preview")).to_contain_text("file updated: ")
    copied = page.locator(".equivalent code").all_text_contents()
    assert copied[0] == (
        "tsuzuki feeds add 'city' 'https://city.example/feed' --job 'bot' --set 'language=\"ja\"'"
        " --set 'screening_prompt=\"What'\\''s new?\"'"
    )
    assert "What\\u0027s new?" in copied[1]
    file = site.application.configuration.file
    assert file
    assert "city.example" not in file.read_text(encoding="utf-8")
    page.get_by_role("button", name="Add feed city").click()
    expect(page.locator("#flash")).to_have_text("Feed city added.")
    expect(page).to_have_url(re.compile("/feeds/jobs/bot/feeds/city$"))
    assert "city.example" in file.read_text(encoding="utf-8")


def test_a_feed_that_is_refused_keeps_what_was_typed(site: Served) -> None:
    headers = {"Content-Type": FORM_TYPE, "Origin": site.client.url}
    typed = "job=bot&name=town&url=ftp%3A%2F%2Ftown.example&settings=langage%3A+ja&button=add"
    answer = site.client.as_(None).request(
        "POST", "/feeds/add", raw=typed.encode(), headers=headers
    )
    assert answer.status == 422
    for kept in (b'value="town"', b"ftp://town.example", b"langage: ja", b"language"):
        assert kept in answer.body
    taken = typed.replace("town", "news").replace("ftp", "http").replace("langage", "language")
    assert post(site, "/feeds/add", taken)[0] == 409


def test_a_job_that_is_made_for_a_feed_lives_in_the_database(site: Served) -> None:
    client = site.client.as_(None)
    form = "job=town&every=2h&name={0}&url=https%3A%2F%2F{0}.example%2Ffeed&button=add"
    assert post(site, "/feeds/add", form.format("one"))[0] == 303
    assert post(site, "/feeds/add", form.format("two")) == (303, "/feeds/jobs/town/feeds/two")
    job = site.application.jobs.get("town")
    assert (job.source, job.schedule_words) == ("database", "every 2 hours")
    names = [feed["name"] for feed in client.get("/feeds.json?job=town").json["feeds"]]
    assert names == ["one", "two"]
    assert post(site, "/feeds/jobs/town/feeds/one/remove")[0] == 303
    assert list(site.application.jobs.body("town")["feeds"]) == ["two"]


def test_the_keys_that_the_form_suggests_are_keys_of_a_feed(site: Served) -> None:
    page = site.client.as_(None).get("/feeds/add").body.decode()
    examples = re.findall(r"<li><code>([^<]+)</code></li>", page)
    assert len(examples) >= 5
    keys = parse_mapping("\n".join(map(html.unescape, examples)), name="settings")
    FeedOptions.model_validate({**keys, "url": "https://city.example/feed"})


def test_the_page_of_a_run_shows_what_it_posted(person: Visitor, site: Served) -> None:
    application = site.application
    application.local_engine.start()
    try:
        idle = Request(job="bot", arguments={"fetch": False, "process": False})
        run_id = application.runs.submit(idle).run_id
        application.runs.wait(run_id, timeout_seconds=60)
    finally:
        application.local_engine.stop()
    record_posts(site, run_id)
    sent, refused = check_twin(person, f"/runs/{run_id}")["effects"]["acts"]
    assert (sent["kind"], sent["state"], sent["path"]) == ("post", "sent", f"/feeds/items/{HELD}")
    assert (refused["kind"], refused["state"], refused["error"]) == ("reply", "refused", "410 gone")
    page = person.open(f"/runs/{run_id}")
    expect(page.locator("#acts")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("#acts tbody tr").nth(1)).to_contain_text("Refused")
    page.locator("#acts").get_by_role("link", name=f"Post {sent['id']}").click()
    expect(page).to_have_url(re.compile(f"/feeds/items/{HELD}$"))


def record_posts(site: Served, run_id: int) -> None:
    """A post that was sent by this run, one by another run, and a reply that was refused."""
    body = PostBody(
        text="The city opens.",
        url="https://news.example/1",
        canonical_url="https://news.example/1",
        language="en",
        visibility="public",
        title=HOSTILE,
    )
    ends = (
        (HELD, PostKind.POST, run_id, OutboxState.SENT, None),
        (POSTED, PostKind.POST, run_id + 1, OutboxState.SENT, None),
        (HELD, PostKind.REPLY, run_id, OutboxState.REFUSED, "410 gone"),
    )
    with site.application.service("feeds").items._database.write() as connection:
        for number, (item_id, kind, sender, end, problem) in enumerate(ends):
            new = posts.NewPost(
                job_name="bot",
                feed_id=1,
                item_id=item_id,
                kind=kind,
                account="default",
                idempotency_key=f"key-{number}",
                body=body,
                content_hash="0",
            )
            now = datetime.now(UTC)
            post = posts.intend(connection, new, run_id=sender, now=now)
            states = {"before": OutboxState.SENDING, "after": end}
            posts.OUTBOX.move(connection, post.id, **states, now=now, run_id=sender, error=problem)


def test_a_line_to_copy_is_one_command(site: Served) -> None:
    client = site.client.as_(None)
    page = client.get("/feeds/requeue?reason=api_failed&feed=news").body.decode()
    copied = [html.unescape(text) for text in re.findall(r'data-copy="([^"]*)"', page)]
    assert copied[0] == "tsuzuki feeds requeue --reason api_failed --feed 'news' --yes"
    assert """-d '{"feed": "news", "reason": "api_failed"}'""" in copied[1]


@pytest.mark.parametrize(("language", "word"), [("en", "Outcome unknown"), ("ja", "結果不明")])
def test_an_item_whose_post_is_not_settled_shows_the_next_look(
    site: Served, language: str, word: str
) -> None:
    client, database = site.client.as_(None), site.application.service("feeds").items._database
    look_at = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
    url = "https://news.example/deferred"
    body = PostBody(text=url, url=url, canonical_url=url, language="en", visibility="public")
    row = {"job_name": "bot", "feed_id": 1, "item_id": DEFERRED, "kind": "post"}
    row |= {"account": "default", "idempotency_key": "open", "state": "unsettled"}
    row |= {"body": body.as_dict(), "content_hash": "0", "created_at": look_at}
    with database.write() as connection:
        connection.execute(
            insert(feed_posts).values(**row, changed_at=look_at, next_look_at=look_at)
        )
    try:
        for path in ("/feeds/items?status=deferred", f"/feeds/items/{DEFERRED}"):
            page = client.get(path, Accept_Language=language).body.decode()
            assert word in page
            assert "2031-05-06T07:08" in page
        assert f"/feeds/items/{DEFERRED}/requeue" not in page
        assert f"/feeds/items/{DEFERRED}/approve" in page
    finally:
        with database.write() as connection:
            connection.execute(delete(feed_posts).where(feed_posts.c.idempotency_key == "open"))


def test_several_held_posts_are_approved_from_the_list(person: Visitor, site: Served) -> None:
    with site.application.service("feeds").items._database.write() as connection:
        held = feeds.find(connection, "bot")
        feed_id = next(one.id for one in held if one.name == "held")
        ids = [
            add_item(
                connection,
                feed_id,
                ItemState(status=ItemStatus.PENDING),
                waiting=WaitingState.APPROVAL,
            )
            for _ in range(2)
        ]
    page = person.open("/feeds/items?waiting=approval")
    expect(page.locator("[data-selection]")).to_be_hidden()
    for item_id in ids:
        page.get_by_label(f"Select item {item_id}").check()
    page.get_by_role("button", name="Approve …").click()
    expect(page.get_by_role("heading", name="Approve 2 posts?")).to_be_visible()
    check_page(page)
    page.get_by_role("button", name="Approve 2 posts").click()
    expect(page.locator("#flash")).to_contain_text("Posts approved: 2")
    expect(page).to_have_url(re.compile(r"/feeds/items\?waiting=approval$"))
    assert post(site, "/feeds/items/approve", f"id={ids[0]}")[0] == 409


def test_held_posts_do_not_count_as_waiting_too(person: Visitor) -> None:
    page = person.open("/feeds")
    cells = page.locator('tr[data-href$="/feeds/held"]').get_by_role("cell")
    expect(cells.nth(3)).to_have_text("0")
    expect(cells.nth(4)).to_have_text(re.compile(r"^[1-9]\d*$"))


@pytest.fixture
def local_feed() -> Iterator[str]:
    entry = "<item><title>Records open</title><link>https://city.example/1</link></item>"
    document = f"<rss version='2.0'><channel><title>City</title>{entry}</channel></rss>".encode()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/feed" else 404)
            self.send_header("Content-Type", "application/rss+xml")
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_about: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_feed_is_fetched_before_it_is_added(person: Visitor, local_feed: str) -> None:
    page = person.open("/feeds/add")
    page.get_by_label("Address", exact=True).fill(f"{local_feed}/feed")
    page.get_by_label("Name").fill("local")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#found")).to_contain_text("City: 1 entry now")
    expect(page.locator("#found")).to_contain_text("Records open")
    page.get_by_label("Address", exact=True).fill(f"{local_feed}/fed")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#found")).to_contain_text("404")
