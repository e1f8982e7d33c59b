"""Each post arrives at Mastodon once, whatever is lost on the way and whatever its key does there."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from tsuzuki.collectors.feeds.channels import mastodon
from tsuzuki.collectors.feeds.sandbox.mastodon import KeyMode, WriteCase
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind

from .posting_fixture import ON_SQLITE, PostingFixture, PostingRun, body_of, link

NUMBER = 1


def test_a_post_is_sent_with_all_it_says_and_recorded(news: PostingFixture) -> None:
    run = news.start()
    assert run.post(1) is OutboxState.SENT
    (status,) = news.mastodon.statuses
    assert (status.text, status.visibility, status.shown.language) == (
        body_of(1).text,
        "unlisted",
        "ja",
    )
    assert news.state(1) == "sent"
    assert run.sent == [news.item(1)]
    assert news.requests("GET", "/instance") == 0


@ON_SQLITE
def test_the_posts_of_a_run_go_over_one_connection(news: PostingFixture) -> None:
    run = news.start()
    run.posting.limits("default")
    for number in range(3):
        run.post(number)
    assert len({seen.request.client for seen in news.server.requests}) == 1


# --- what is lost ---------------------------------------------------------------------------------

IS_STORED = {
    WriteCase.REPLY_LOST: True,
    WriteCase.REQUEST_LOST: False,
    WriteCase.GATEWAY_TIMEOUT: True,
    WriteCase.SERVER_ERROR: False,
    WriteCase.UNAVAILABLE: False,
}


@ON_SQLITE
@pytest.mark.parametrize(("loss", "is_stored"), IS_STORED.items())
def test_one_status_whatever_is_lost(
    news: PostingFixture, loss: WriteCase, *, is_stored: bool
) -> None:
    run = news.start()
    for number, mode in enumerate(KeyMode):
        news.mastodon.settings.key_mode = mode
        news.mastodon.post_cases.add(loss)
        state = run.post(number)
        assert state is (OutboxState.SENT if is_stored else OutboxState.UNSETTLED)
        if not is_stored:
            assert len(run.settle_after_looks().released) == 1
            assert run.post(number) is OutboxState.SENT
        assert news.texts() == [body_of(one).text for one in range(number + 1)]
        assert run.sent[-1] == news.item(number)
    assert len(run.sent) == len(KeyMode)


def crash_before_sending(run: PostingRun) -> None:
    run.intend(NUMBER)


def crash_after_sending(run: PostingRun) -> None:
    run.posting.channel("default").send(run.intend(NUMBER).outgoing)


def crash_before_the_record(run: PostingRun) -> None:
    run.posting.deliver(run.intend(NUMBER))


def crash_before_the_commit(run: PostingRun) -> None:
    delivery = run.posting.deliver(run.intend(NUMBER))
    with suppress(KeyboardInterrupt), run.context.transaction() as connection:
        run.posting.store(connection, delivery)
        raise KeyboardInterrupt


CRASHES = [
    crash_before_sending,
    crash_after_sending,
    crash_before_the_record,
    crash_before_the_commit,
]


@pytest.mark.parametrize("crash", CRASHES)
def test_one_status_wherever_its_run_dies(
    news: PostingFixture, crash: Callable[[PostingRun], None]
) -> None:
    for count, mode in enumerate(KeyMode, 1):
        news.mastodon.settings.key_mode = mode
        dead = news.start()
        crash(dead)
        dead.end()
        assert news.state(NUMBER) == "sending"
        run = news.start()
        is_sent = crash is not crash_before_sending
        settled = run.settle() if is_sent else run.settle_after_looks()
        assert len(settled.sent if is_sent else settled.released) == 1
        assert run.post(NUMBER) is OutboxState.SENT
        assert len(news.texts()) == count
        assert set(run.sent) == {news.item(NUMBER)}
        run.end()
        news.forget(NUMBER)
        news.clock.advance(7200)


def test_a_post_of_a_run_that_goes_on_is_not_touched(news: PostingFixture) -> None:
    first = news.start()
    post = first.intend(1)
    second = news.start()
    assert second.settle().released == []
    assert second.post(1) is OutboxState.SENDING
    assert news.texts() == []
    assert first.send(post).state is OutboxState.SENT


@ON_SQLITE
def test_an_absent_post_is_believed_absent_only_at_the_second_look_after_a_pause(
    news: PostingFixture,
) -> None:
    dead = news.start()
    post = dead.intend(1)
    dead.end()
    run = news.start()
    for seconds in (0, 30, 30, 60, 239):
        news.clock.advance(seconds)
        run.settle()
        assert (run.freed, news.state(1)) == ([], "unsettled")
    news.clock.advance(1)
    run.settle()
    assert (run.freed, news.state(1)) == ([post.item_id], "intended")


@ON_SQLITE
def test_what_is_stored_much_later_is_left_and_found_by_the_next_run(news: PostingFixture) -> None:
    news.mastodon.post_cases.add(WriteCase.STORED_LATER)
    first = news.start()
    assert first.post(1) is OutboxState.UNSETTLED
    assert first.failed == [news.item(1)]
    first.end()
    news.mastodon.store_pending()
    news.clock.advance(60)
    run = news.start()
    assert [post.item_id for post in run.settle().sent] == [news.item(1)]
    assert news.texts() == [body_of(1).text]


@ON_SQLITE
def test_a_server_that_is_down_leaves_the_post_for_the_next_run(news: PostingFixture) -> None:
    news.server.faults.add(StandInFault(kind=StandInFaultKind.RESET, times=None))
    first = news.start()
    assert first.post(1) is OutboxState.UNSETTLED
    assert first.post(1) is OutboxState.UNSETTLED
    news.clock.advance(60)
    assert len(first.settle().unsettled) == 1
    first.end()
    news.server.faults.clear()
    run = news.start()
    for seconds in (300, 900):
        news.clock.advance(seconds)
        settled = run.settle()
    assert len(settled.released) == 1
    assert run.post(1) is OutboxState.SENT
    assert len(news.texts()) == 1


# --- looking back ---------------------------------------------------------------------------------


@ON_SQLITE
def test_the_look_back_goes_through_pages_and_stops_at_the_intent(
    news: PostingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mastodon, "PAGE_SIZE", 4)
    run = news.start()
    for number in range(100, 110):
        run.post(number)
    news.clock.advance(7200)
    dead = news.start()
    crash_after_sending(dead)
    for number in range(200, 209):
        dead.post(number)
    dead.end()
    before = news.requests("GET", "/statuses")
    assert len(news.start().settle().sent) == 1
    assert news.requests("GET", "/statuses") - before == 3
    monkeypatch.setattr(mastodon, "PAGES_MAX", 1)
    dead = news.start()
    post = dead.intend(2)
    for number in range(300, 310):
        dead.post(number)
    dead.end()
    run = news.start()
    assert [one.id for one in run.settle().unsettled] == [post.id]
    assert run.freed == [post.item_id], "please check it yourself"


@ON_SQLITE
def test_an_earlier_post_of_the_link_by_hand_and_a_reply_to_it_are_not_taken_for_it(
    news: PostingFixture,
) -> None:
    run = news.start()
    channel = run.posting.channel("default")
    by_hand = channel._client.status_post(f"Look: {link(1)}")  # type: ignore[attr-defined]
    news.clock.advance(7200)
    channel._client.status_post(f"Again {link(1)}", in_reply_to_id=by_hand.id)  # type: ignore[attr-defined]
    run.intend(1)
    run.end()
    next_run = news.start()
    assert len(next_run.settle_after_looks().released) == 1
    assert next_run.post(1) is OutboxState.SENT
    assert len(news.texts()) == 3


def test_the_post_of_another_item_is_not_taken_for_it(
    news: PostingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = news.start()
    run.post(1001)
    run.intend(1002)
    run.end()
    next_run = news.start()
    assert len(next_run.settle_after_looks().released) == 1
    assert next_run.post(1002) is OutboxState.SENT
    # Even where the links are the same to the receiver.
    monkeypatch.setattr(mastodon, "link_key", lambda _url: "")
    next_run.intend(1003)
    next_run.end()
    assert len(news.start().settle_after_looks().released) == 1


@ON_SQLITE
def test_the_link_is_known_again_in_the_card_alone(
    news: PostingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = news.start()
    crash_after_sending(dead)
    dead.end()
    monkeypatch.setattr(
        "tsuzuki.collectors.feeds.sandbox.mastodon.records.Status.content",
        property(lambda _: "<p>text</p>"),
    )
    assert len(news.start().settle().sent) == 1
