"""A webhook gets each post signed and under one id; what it may have taken is not sent again unless it may be."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator

import pytest

from tsuzuki.collectors.feeds.channels.protocol import AccountStopped
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.errors import RateLimitedUntil
from tsuzuki.outward.outbox import OutboxState
from tsuzuki.sandbox.exchange import Response, StandInRequest
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

from .posting_fixture import PostingFixture, body_of

KEY = b"a key of some bytes, all of them"
SECRET = "whsec_" + base64.b64encode(KEY).decode()

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"])


def is_signed(request: StandInRequest, key: bytes) -> bool:
    """As a receiver checks it, by the text of Standard Webhooks."""
    said = request.headers
    signed = f"{said['webhook-id']}.{said['webhook-timestamp']}.".encode() + request.body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return said["webhook-signature"] == f"v1,{digest}"


@pytest.fixture
def receiver() -> Iterator[StandIn]:
    with StandIn(lambda _request: Response(status=204)) as server:
        yield server


@pytest.fixture
def hooked(news: PostingFixture, receiver: StandIn) -> PostingFixture:
    hook = {"type": "webhook", "url": f"{receiver.url}/hook?token=s3cret", "secret": SECRET}
    news.accounts["hook"] = {**hook, "timeout": 2.0}
    news.accounts["idempotent"] = {**hook, "timeout": 2.0, "idempotent": True}
    return news


def test_a_post_is_signed_and_says_everything(hooked: PostingFixture, receiver: StandIn) -> None:
    assert hooked.start().post(1, account="hook") is OutboxState.SENT
    (seen,) = receiver.requests
    assert is_signed(seen.request, KEY)
    assert seen.request.target == "/hook?token=s3cret"
    said = json.loads(seen.request.body)
    assert said["type"] == "feed.post"
    assert said["data"] == {"id": seen.request.headers["webhook-id"], **body_of(1).as_dict()}
    sent_at = int(seen.request.headers["webhook-timestamp"])
    assert abs(sent_at - hooked.clock.now().timestamp()) < 1


def test_a_secret_of_another_form_is_taken_as_it_is(
    hooked: PostingFixture, receiver: StandIn
) -> None:
    hooked.accounts["hook"]["secret"] = "plain words"
    hooked.start().post(1, account="hook")
    assert is_signed(receiver.requests[0].request, b"plain words")


@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(kind=StandInFaultKind.RESET),
        StandInFault(status=500),
        StandInFault(status=408),
        StandInFault(status=503),
    ],
)
def test_an_unknown_outcome_is_left_to_a_person(
    hooked: PostingFixture, receiver: StandIn, fault: StandInFault
) -> None:
    receiver.faults.add(fault)
    run = hooked.start()
    outcome = run.send(run.intend(1, account="hook"))
    assert (outcome.state, outcome.post.next_look_at) == (OutboxState.UNSETTLED, None)
    assert run.settle_after_looks().released == []
    assert run.post(1, account="hook") is OutboxState.UNSETTLED
    assert len(receiver.requests) == 1


def test_an_idempotent_receiver_gets_it_again_under_the_same_id(
    hooked: PostingFixture, receiver: StandIn
) -> None:
    receiver.faults.add(StandInFault(kind=StandInFaultKind.RESET))
    run = hooked.start()
    assert run.post(1, account="idempotent") is OutboxState.UNSETTLED
    assert run.settle().released == []
    hooked.clock.advance(60)
    assert len(run.settle().released) == 1
    assert run.post(1, account="idempotent") is OutboxState.SENT
    first, second = (seen.request.headers["webhook-id"] for seen in receiver.requests)
    assert first == second


def test_a_run_that_died_leaves_it_to_a_person_or_sends_it_again(
    hooked: PostingFixture, receiver: StandIn
) -> None:
    dead = hooked.start()
    dead.intend(1, account="hook")
    dead.intend(2, account="idempotent")
    dead.end()
    run = hooked.start()
    settled = run.settle()
    assert [post.account for post in settled.unsettled] == ["hook"]
    assert [post.account for post in settled.released] == ["idempotent"]
    assert run.post(2, account="idempotent") is OutboxState.SENT
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_refusal_is_final(hooked: PostingFixture, receiver: StandIn, status: int) -> None:
    receiver.faults.add(StandInFault(status=status, body="no"))
    run = hooked.start()
    assert run.post(1, account="hook") is OutboxState.REFUSED
    assert run.post(1, account="hook") is OutboxState.REFUSED
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("status", [301, 401, 403, 410])
def test_a_receiver_that_will_have_nothing_stops_the_account(
    hooked: PostingFixture, receiver: StandIn, status: int
) -> None:
    receiver.faults.add(StandInFault(status=status, headers={"Location": "http://127.0.0.1:1/"}))
    run = hooked.start()
    post = run.intend(1, account="hook")
    with pytest.raises(AccountStopped) as stopped:
        run.send(post)
    assert "s3cret" not in str(stopped.value)
    assert hooked.state(1) == "intended"


def test_too_many_requests_are_kept_back_as_long_as_asked(
    hooked: PostingFixture, receiver: StandIn
) -> None:
    receiver.faults.add(StandInFault(status=429, headers={"Retry-After": "120"}))
    run = hooked.start()
    post = run.intend(1, account="hook")
    with pytest.raises(RateLimitedUntil) as limited:
        run.send(post)
    assert (limited.value.until - hooked.clock.now()).total_seconds() == 120


@pytest.mark.parametrize(
    ("account", "settings", "said"),
    [
        ("hok", {}, r"account 'hok' is missing"),
        ("hook", {"secret": None}, r"'hook' has no `secret`"),
        ("hook", {"url": None}, r"'hook' has no `url`"),
        ("hook", {"type": "mastodon"}, r"'hook' has no `base_url`"),
        ("hook", {"type": "file"}, r"'hook' has no `path`"),
    ],
)
def test_an_account_that_is_not_set_up_is_told(
    hooked: PostingFixture, account: str, settings: dict[str, str | None], said: str
) -> None:
    hooked.accounts["hook"].update(settings)
    with pytest.raises(ConfigurationError, match=said) as wrong:
        hooked.start().posting.channel(account)
    assert account == "hook" or 'Did you mean "hook"?' in (wrong.value.hint or "")


def test_a_post_whose_account_is_not_set_up_surely_did_not_arrive(hooked: PostingFixture) -> None:
    run = hooked.start()
    post = run.intend(1, account="hok")
    with pytest.raises(ConfigurationError):
        run.send(post)
    assert hooked.state(1) == "intended"
