"""A feed posts no more than its caps say, and tells each change of an article once."""

from datetime import timedelta

import pytest

from support.dialects import only_on_postgresql
from support.threads import TIMEOUT_SECONDS, in_background
from support.waiting import wait_until_blocked
from tsuzuki.collectors.feeds.options import PostCaps
from tsuzuki.collectors.feeds.posting.caps import PostsLeft
from tsuzuki.collectors.feeds.sandbox.mastodon import WriteCase
from tsuzuki.collectors.feeds.tables import PostKind
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.store.sql.database import Connection

from .posting_fixture import PostingFixture, PostingRun, body_of


def left(run: PostingRun, **caps: int | None) -> PostsLeft:
    database = run.fixture.database
    none = {"per_run": None, "per_hour": None, "per_day": None}
    with database.read() as connection:
        return run.posting.posts_left(
            connection,
            run.fixture.feed_id,
            PostCaps.model_validate({**none, **caps}),
            now=database.now(connection),
        )


# --- caps -----------------------------------------------------------------------------------------


def test_posts_are_counted_by_run_hour_and_day(news: PostingFixture) -> None:
    start = news.clock.now()
    run = news.start()
    for number in range(3):
        run.post(number)
        news.clock.advance(600)
    assert left(run, per_run=5).count == 2
    assert left(run, per_run=3).count == 0
    assert left(run, per_hour=4, per_day=50).count == 1
    assert left(run, per_hour=3) == PostsLeft(count=0, open_at=start + timedelta(hours=1))
    assert left(run, per_hour=2).open_at == start + timedelta(seconds=600, hours=1)
    assert left(run, per_hour=3, per_day=3).open_at == start + timedelta(days=1)
    assert left(run).count > 1000
    other = news.start()
    assert left(other, per_run=3).count == 3
    news.clock.advance(3600)
    assert left(run, per_hour=3).count == 3
    assert left(run, per_day=3).count == 0
    news.clock.advance(86_400)
    assert left(run, per_day=3).count == 3


def test_a_cap_of_none_at_all_lets_nothing_through(news: PostingFixture) -> None:
    run = news.start()
    assert left(run, per_day=0).count == 0
    assert left(run, per_run=0).count == 0


def test_a_post_that_may_have_arrived_counts(news: PostingFixture) -> None:
    run = news.start()
    news.mastodon.post_cases.add(WriteCase.STORED_LATER)
    assert run.post(1) is OutboxState.UNSETTLED
    run.intend(2)
    assert left(run, per_hour=3).count == 1
    assert left(run, per_run=3).count == 2


# --- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PostKind.EDIT, PostKind.REPLY])
def test_each_content_is_told_once(news: PostingFixture, kind: PostKind) -> None:
    run = news.start()
    run.post(1)
    run.post(2)
    assert run.changes() == []
    for count, content_hash in enumerate(["hash 2", "hash 3", "hash 1", "hash 2"], 1):
        news.change_article(1, content_hash)
        (change,) = run.changes()
        assert change.content_hash == content_hash
        outcome = run.change(1, kind, change, f"Version {count}")
        assert outcome.state is OutboxState.SENT
        assert run.changes() == []
    texts = news.texts()
    if kind is PostKind.EDIT:
        assert texts == [body_of(1, "Version 4").text, body_of(2).text]
        assert len(news.mastodon.statuses[0].versions) == 5
    else:
        assert texts[2:] == [body_of(1, f"Version {count}").text for count in range(1, 5)]
        first = news.mastodon.statuses[0].id
        assert {status.in_reply_to_id for status in news.mastodon.statuses[2:]} == {first}


@pytest.mark.parametrize("kind", [PostKind.EDIT, PostKind.REPLY])
@pytest.mark.parametrize("case", [WriteCase.REPLY_LOST, WriteCase.REQUEST_LOST])
def test_a_change_is_told_once_though_an_answer_is_lost(
    news: PostingFixture, kind: PostKind, case: WriteCase
) -> None:
    run = news.start()
    run.post(1)
    for content_hash in ("hash 2", "hash 3"):
        news.change_article(1, content_hash)
        cases = news.mastodon.edit_cases if kind is PostKind.EDIT else news.mastodon.post_cases
        cases.add(case)
        (change,) = run.changes()
        outcome = run.change(1, kind, change, f"Now {content_hash}")
        if case is WriteCase.REQUEST_LOST:
            assert outcome.state is OutboxState.UNSETTLED
            run.settle_after_looks()
            assert run.send(run.intend_again(outcome.post)).state is OutboxState.SENT
        else:
            assert outcome.state is OutboxState.SENT
    told = [body_of(1, f"Now {one}").text for one in ("hash 2", "hash 3")]
    if kind is PostKind.EDIT:
        assert [version.text for version in news.mastodon.statuses[0].versions[1:]] == told
    else:
        assert news.texts()[1:] == told


def test_two_runs_that_see_a_change_tell_it_once(news: PostingFixture) -> None:
    first, second = news.start(), news.start()
    first.post(1)
    news.change_article(1, "hash 2")
    (seen_by_first,), (seen_by_second,) = first.changes(), second.changes()
    assert first.change(1, PostKind.REPLY, seen_by_first, "New").state is OutboxState.SENT
    assert second.change(1, PostKind.REPLY, seen_by_second, "New").state is OutboxState.SENT
    assert len(news.texts()) == 2


def test_a_change_whose_post_is_gone_is_refused_and_not_tried_again(news: PostingFixture) -> None:
    run = news.start()
    run.post(1)
    news.mastodon.statuses[0].deleted = True
    news.change_article(1, "hash 2")
    (change,) = run.changes()
    assert run.change(1, PostKind.EDIT, change, "New").state is OutboxState.REFUSED
    assert run.changes() == []


def test_an_old_post_and_one_that_is_not_settled_are_left_alone(news: PostingFixture) -> None:
    run = news.start()
    run.post(1)
    news.change_article(1, "hash 2")
    (change,) = run.changes()
    news.mastodon.edit_cases.add(WriteCase.REQUEST_LOST, times=None)
    assert run.change(1, PostKind.EDIT, change, "New").state is OutboxState.UNSETTLED
    news.change_article(1, "hash 3")
    assert run.changes() == []
    news.mastodon.edit_cases.clear()
    run.post(2)
    news.clock.advance(86_400 * 31)
    news.change_article(2, "hash 2")
    assert run.changes() == []


@only_on_postgresql
def test_two_runs_at_the_same_time_post_no_more_than_the_cap(news: PostingFixture) -> None:
    """On SQLite the second transaction waits for the first one anyway."""
    caps = PostCaps.model_validate({"per_run": None, "per_hour": 1, "per_day": None})
    first, second = news.start(), news.start()
    items, now = (news.item(1), news.item(2)), news.clock.now()

    def room(run: PostingRun, connection: Connection, item_id: int) -> int:
        return run.posting.room_for(connection, news.feed_id, item_id, caps, now=now).count

    def room_of_second() -> int:
        with second.context.transaction() as connection:
            return room(second, connection, items[1])

    with first.context.transaction() as connection:
        assert room(first, connection, items[0]) == 1
        first.posting.intend(
            connection,
            feed_id=news.feed_id,
            item_id=items[0],
            account="default",
            body=body_of(1),
            content_hash="hash 1",
        )
        waiting = in_background(room_of_second)
        wait_until_blocked(news.database)
    assert waiting.result(TIMEOUT_SECONDS) == 0
