"""What Mastodon answers decides what becomes of a post: refused, kept back, looked for; and how long it may be."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.certificates import make_certificate
from support.threads import TIMEOUT_SECONDS
from tsuzuki.collectors.feeds.channels.protocol import AccountStopped, Outgoing, PostRefused, Sent
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, KeyMode, WriteCase
from tsuzuki.outward.errors import RateLimitedUntil, SourceUnavailable
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

from .posting_fixture import ON_SQLITE, PostingFixture

STATUSES = "/api/v1/statuses"


# --- what the server says -------------------------------------------------------------------------


def test_a_refused_post_is_never_sent_again(news: PostingFixture) -> None:
    news.mastodon.settings.max_characters = 30
    run = news.start()
    outcome = run.send(run.intend(1))
    assert (outcome.state, news.state(1)) == (OutboxState.REFUSED, "refused")
    assert "422" in (outcome.error or "")
    news.mastodon.settings.max_characters = 500
    assert run.post(1) is OutboxState.REFUSED
    assert run.settle().sent == []
    assert news.requests("POST", STATUSES) == 1
    assert run.failed == [news.item(1)] * 2


@ON_SQLITE
def test_a_second_try_that_is_refused_as_a_duplicate_finds_the_first(
    news: PostingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    news.mastodon.settings.key_mode = KeyMode.IGNORED
    news.mastodon.post_cases.add(WriteCase.STORED_LATER)
    run = news.start()
    assert run.post(1) is OutboxState.UNSETTLED
    run.settle_after_looks()

    def store_and_refuse(_post: Outgoing) -> Sent:
        news.mastodon.store_pending()
        raise PostRefused("Mastodon answered 422: duplicate")

    monkeypatch.setattr(run.posting.channel("default"), "send", store_and_refuse)
    assert run.post(1) is OutboxState.SENT
    assert len(news.texts()) == 1


@ON_SQLITE
@pytest.mark.parametrize("flag", ["token_revoked", "suspended"])
def test_an_account_that_may_not_post_stops_and_the_post_stays_intended(
    news: PostingFixture, flag: str
) -> None:
    setattr(news.mastodon.account, flag, True)
    run = news.start()
    post = run.intend(1)
    with pytest.raises(AccountStopped) as stopped:
        run.send(post)
    assert stopped.value.permanent
    assert TOKEN not in f"{stopped.value.message} {stopped.value.hint} {run.log}"
    assert (news.state(1), run.sent, run.failed) == ("intended", [], [])
    setattr(news.mastodon.account, flag, False)
    assert run.post(1) is OutboxState.SENT


@ON_SQLITE
@pytest.mark.parametrize("epoch", [False, True])
def test_a_rate_limit_is_kept_until_the_server_says(news: PostingFixture, epoch: bool) -> None:
    news.mastodon.settings.posts_max = 1
    news.mastodon.settings.reset_as_epoch = epoch
    run = news.start()
    assert run.post(1) is OutboxState.SENT
    post = run.intend(2)
    with pytest.raises(RateLimitedUntil) as limited:
        run.send(post)
    assert news.state(2) == "intended"
    wait = (limited.value.until - news.clock.now()).total_seconds()
    assert 0 < wait <= 3 * 3600 + 1
    news.clock.advance(wait + 1)
    assert run.post(2) is OutboxState.SENT


@ON_SQLITE
@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(path=f"{STATUSES}*", status=404, body='{"error": "Not Found"}'),
        StandInFault(
            path=f"{STATUSES}*", status=301, headers={"Location": "https://elsewhere.example/"}
        ),
    ],
)
def test_a_wrong_address_is_told_as_one(news: PostingFixture, fault: StandInFault) -> None:
    news.server.faults.add(fault)
    run = news.start()
    post = run.intend(1)
    with pytest.raises(AccountStopped) as stopped:
        run.send(post)
    assert "base_url" in (stopped.value.hint or "")
    assert news.state(1) == "intended"


@ON_SQLITE
@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(kind=StandInFaultKind.HTML, path=STATUSES, status=200, method="POST"),
        StandInFault(kind=StandInFaultKind.CUT, path=STATUSES, method="POST"),
        StandInFault(path=STATUSES, status=200, body="{}", method="POST"),
        StandInFault(path=STATUSES, status=200, body="[1]", method="POST"),
        StandInFault(path=STATUSES, status=520, body="", method="POST"),
    ],
)
def test_an_answer_that_says_nothing_is_an_unknown_outcome(
    news: PostingFixture, fault: StandInFault
) -> None:
    news.server.faults.add(fault)
    run = news.start()
    if run.post(1) is OutboxState.UNSETTLED:
        run.settle_after_looks()
        assert run.post(1) is OutboxState.SENT
    assert len(news.texts()) == 1


@ON_SQLITE
def test_a_taken_post_is_sent_whatever_else_the_answer_says(news: PostingFixture) -> None:
    news.server.faults.add(
        StandInFault(
            path=STATUSES,
            method="POST",
            headers={"X-RateLimit-Reset": "soon", "X-RateLimit-Remaining": "few"},
            body='{"id": "7", "url": "http://toots.example/7", "account": 3, "created_at": []}',
        )
    )
    run = news.start()
    sent = run.posting.channel("default").send(run.intend(1).outgoing)
    assert sent == Sent(remote_id="7", remote_url="http://toots.example/7")


# --- limits ---------------------------------------------------------------------------------------


def test_the_limits_of_the_server_are_asked_once_a_day(news: PostingFixture) -> None:
    news.mastodon.settings.max_characters = 1234
    run = news.start()
    assert run.posting.limits("default").characters_max == 1234
    news.mastodon.settings.max_characters = 99
    news.clock.advance(3600 * 23)
    assert run.posting.limits("default").characters_max == 1234
    news.clock.advance(3600 * 2)
    news.server.faults.add(StandInFault(kind=StandInFaultKind.RESET))
    assert run.posting.limits("default").characters_max == 1234
    assert news.start().posting.limits("default").characters_max == 99


@ON_SQLITE
def test_an_older_server_tells_its_limits_in_the_older_way(news: PostingFixture) -> None:
    news.server.faults.add(
        StandInFault(path="/api/v2/*", status=404, body='{"error": "Not Found"}')
    )
    news.mastodon.settings.max_characters = 777
    limits = news.start().posting.limits("default")
    assert (limits.characters_max, limits.characters_per_url) == (777, 23)


# --- TLS ------------------------------------------------------------------------------------------


@contextmanager
def closing_during_the_handshake() -> Iterator[str]:
    """The address of a server that reads what a client says first, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=close_each, args=(listener,), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(TIMEOUT_SECONDS)


def close_each(listener: socket.socket) -> None:
    while True:
        try:
            link, _ = listener.accept()
        except OSError:
            return
        with link:
            link.recv(65_536)


@ON_SQLITE
def test_a_handshake_that_is_cut_off_is_a_failure_of_the_moment(news: PostingFixture) -> None:
    with closing_during_the_handshake() as url:
        news.accounts["default"]["base_url"] = url
        run = news.start()
        assert run.post(1) is OutboxState.UNSETTLED
        with pytest.raises(SourceUnavailable, match="SSL"):
            run.posting.channel("default").read_limits()


@ON_SQLITE
def test_a_certificate_that_is_not_good_stops_the_account(
    news: PostingFixture, tmp_path: Path
) -> None:
    tls = make_certificate(tmp_path).server_context()
    with StandIn(news.mastodon, tls=tls) as server:
        news.accounts["default"]["base_url"] = server.url
        run = news.start()
        post = run.intend(1)
        with pytest.raises(AccountStopped, match="certificate"):
            run.send(post)
    assert news.state(1) == "intended"
    assert news.texts() == []
