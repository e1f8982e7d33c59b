"""Posts whose outcome a client cannot tell: what a repeated key does, and what is stored in spite of the answer."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.request import Request, urlopen

import pytest
from mastodon import Mastodon as Client
from mastodon import errors

from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, KeyMode, Mastodon, WriteCase, mastodon
from tsuzuki.model.clock import ManualClock
from tsuzuki.sandbox.server import StandIn


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def application(clock: ManualClock) -> Mastodon:
    return mastodon(clock=clock)


@pytest.fixture
def server(application: Mastodon) -> Iterator[StandIn]:
    with StandIn(application) as server:
        yield server


@pytest.fixture
def client(server: StandIn) -> Iterator[Client]:
    client = Client(
        api_base_url=server.url,
        access_token=TOKEN,
        ratelimit_method="throw",
        version_check_mode="none",
        request_timeout=10,
    )
    yield client
    client.session.close()


def test_an_honoured_key_gives_the_first_status_for_an_hour(
    application: Mastodon, client: Client, clock: ManualClock
) -> None:
    first = client.status_post("Hello", idempotency_key="k")
    assert client.status_post("Hello again", idempotency_key="k").id == first.id
    assert client.status_post("Hello", idempotency_key="other").id != first.id
    clock.advance(3600)
    assert client.status_post("Hello", idempotency_key="k").id != first.id
    assert len(application.statuses) == 3


def test_an_ignored_key_makes_a_second_status(application: Mastodon, client: Client) -> None:
    application.settings.key_mode = KeyMode.IGNORED
    for _ in range(2):
        client.status_post("Hello", idempotency_key="k")
    assert len(application.statuses) == 2


def test_a_repeated_key_may_answer_500_although_the_status_exists(
    application: Mastodon, client: Client
) -> None:
    application.settings.key_mode = KeyMode.ERROR_ON_REPEAT
    client.status_post("Hello", idempotency_key="k")
    with pytest.raises(errors.MastodonInternalServerError):
        client.status_post("Hello", idempotency_key="k")
    assert len(application.statuses) == 1


STORED = {
    WriteCase.GATEWAY_TIMEOUT: (errors.MastodonGatewayTimeoutError, 1),
    WriteCase.STORED_LATER: (errors.MastodonGatewayTimeoutError, 0),
    WriteCase.REPLY_LOST: (errors.MastodonNetworkError, 1),
    WriteCase.REQUEST_LOST: (errors.MastodonNetworkError, 0),
    WriteCase.SERVER_ERROR: (errors.MastodonInternalServerError, 0),
    WriteCase.UNAVAILABLE: (errors.MastodonServiceUnavailableError, 0),
    WriteCase.TOO_MANY_REQUESTS: (errors.MastodonRatelimitError, 0),
}


@pytest.mark.parametrize("case", STORED)
def test_a_post_may_be_stored_in_spite_of_its_answer(
    application: Mastodon, client: Client, case: WriteCase
) -> None:
    error, stored = STORED[case]
    application.post_cases.add(case, containing="Hello")
    with pytest.raises(error):
        client.status_post("Hello", idempotency_key="k")
    assert len(application.statuses) == stored
    if case is not WriteCase.STORED_LATER:
        client.status_post("Hello", idempotency_key="k")
        assert len(application.statuses) == 1


def test_a_post_left_for_later_blocks_its_key_until_it_is_stored(
    server: StandIn, application: Mastodon, client: Client, clock: ManualClock
) -> None:
    application.post_cases.add("stored_later")
    with pytest.raises(errors.MastodonGatewayTimeoutError):
        client.status_post("Hello", idempotency_key="k")
    with pytest.raises(errors.MastodonServiceUnavailableError):
        client.status_post("Hello", idempotency_key="k")
    clock.advance(5)
    urlopen(Request(f"{server.url}/_sandbox/store_pending", method="POST")).close()
    (stored,) = application.statuses
    assert stored.created_at == clock.now()
    assert client.status_post("Hello", idempotency_key="k").id == str(stored.id)


def test_a_post_is_stored_by_itself_after_its_time(
    application: Mastodon, client: Client, clock: ManualClock
) -> None:
    application.settings.key_mode = KeyMode.IGNORED
    application.post_cases.add("stored_later", seconds=8)
    with pytest.raises(errors.MastodonGatewayTimeoutError):
        client.status_post("Hello", idempotency_key="k")
    due_at = clock.now() + timedelta(seconds=8)
    clock.advance(7)
    assert application.statuses == []
    clock.advance(5)
    assert [status.created_at for status in application.statuses] == [due_at]
    client.status_post("Hello", idempotency_key="k")
    assert len(application.statuses) == 2


def test_the_list_of_statuses_may_lag(
    application: Mastodon, client: Client, clock: ManualClock
) -> None:
    application.settings.list_lag_seconds = 10
    posted = client.status_post("Hello")
    account = client.account_verify_credentials().id
    assert client.account_statuses(account) == []
    assert client.status(posted.id).id == posted.id
    clock.advance(10)
    assert [status.id for status in client.account_statuses(account)] == [posted.id]


@pytest.mark.parametrize("case", STORED)
def test_an_edit_goes_wrong_in_the_same_ways(
    application: Mastodon, client: Client, case: WriteCase
) -> None:
    error, stored = STORED[case]
    posted = client.status_post("Hello")
    application.edit_cases.add(case)
    with pytest.raises(error):
        client.status_update(posted.id, "Hello, world")
    assert (application.statuses[0].text == "Hello, world") is bool(stored)


def test_a_slow_post_is_stored_before_its_client_gives_up(
    application: Mastodon, client: Client
) -> None:
    application.post_cases.add("slow", seconds=60)
    client.request_timeout = 0.2
    with pytest.raises(errors.MastodonNetworkError):
        client.status_post("Hello")
    assert len(application.statuses) == 1


def test_cases_of_posts_and_edits_are_to_be_had_over_http(
    server: StandIn, application: Mastodon
) -> None:
    for path, cases in (("cases", application.post_cases), ("edit_cases", application.edit_cases)):
        for case in WriteCase:
            body = json.dumps({"case": case.value, "times": 2}).encode()
            urlopen(Request(f"{server.url}/_sandbox/{path}", data=body)).close()
        assert [planned.case for planned in cases.waiting] == list(WriteCase)
