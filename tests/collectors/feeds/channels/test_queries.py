"""What is asked before each post is answered by an index, however many posts a feed has made."""

from datetime import timedelta

from sqlalchemy import insert, text

from support.query_plans import last_sent, ways_to
from tsuzuki.collectors.feeds.queries import posts
from tsuzuki.collectors.feeds.tables import feed_posts, item_details, items
from tsuzuki.store.sql.database import Connection

from .posting_fixture import JOB, PostingFixture, body_of, link

POSTS = 3_000


def add_posts(news: PostingFixture, connection: Connection) -> None:
    """One post every hour until now."""
    now = news.clock.now()
    numbers = range(1, POSTS + 1)
    times = {number: now - timedelta(hours=POSTS - number) for number in numbers}
    common = {"published_at": now, "status": 3, "retry_count": 0, "created_at": now}
    connection.execute(
        insert(items),
        [{"id": n, "url": link(n), "title": "", "last_checked_at": now, **common} for n in numbers],
    )
    details = {"feed_id": news.feed_id, "categories": [], "excerpt": "", "attachments": []}
    connection.execute(
        insert(item_details),
        [
            {"item_id": n, "canonical_url": link(n), "content_hash": "hash 1", **details}
            for n in numbers
        ],
    )
    body = body_of(1).as_dict()
    connection.execute(
        insert(feed_posts),
        [
            {
                "job_name": JOB,
                "feed_id": news.feed_id,
                "item_id": n,
                "kind": "post",
                "account": "default",
                "idempotency_key": str(n),
                "state": "sent",
                "body": body,
                "content_hash": "hash 1",
                "created_at": times[n],
                "changed_at": times[n],
                "sent_by_run": n // 10,
            }
            for n in numbers
        ],
    )
    connection.execute(text("ANALYZE"))


def test_the_caps_and_the_changes_read_only_the_newest_posts(news: PostingFixture) -> None:
    with news.database.write() as connection:
        add_posts(news, connection)
    now = news.clock.now()
    with news.database.read() as connection, last_sent(connection) as sent:
        since = now - timedelta(days=1)
        assert len(posts.times(connection, news.feed_id, since=since, most=50)) == 24
        for asked in [*sent]:
            (way,) = ways_to(connection, "tsuzuki_feed_posts", asked)
            assert "tsuzuki_ix_feed_posts_feed_id_state" in way
    with news.database.read() as connection, last_sent(connection) as sent:
        since = now - timedelta(days=30)
        assert posts.changed(connection, news.feed_id, since=since, most=100) == []
        (asked,) = sent
        ways = [
            *ways_to(connection, "tsuzuki_feed_posts", asked),
            *ways_to(connection, "later", asked),
        ]
        # With few articles PostgreSQL rather starts with those that changed.
        is_sqlite = connection.dialect.name == "sqlite"
        assert "tsuzuki_ix_feed_posts_feed_id_state" in ways[0] or not is_sqlite
        assert not any("Seq Scan" in way or way.startswith("SCAN") for way in ways)


def test_the_posts_of_a_run_are_found_by_the_run(news: PostingFixture) -> None:
    with news.database.write() as connection:
        add_posts(news, connection)
    with news.database.read() as connection, last_sent(connection) as sent:
        found = posts.of_run(connection, JOB, 200, limit=50)
        (way,) = ways_to(connection, "tsuzuki_feed_posts", sent[0])
    assert [post.id for post in found] == [*range(2000, 2010)]
    assert "tsuzuki_ix_feed_posts_sent_by_run" in way
