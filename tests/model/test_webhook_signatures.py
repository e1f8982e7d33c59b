"""Webhooks: what a sender signed is accepted, and nothing that was changed, is too old, or has another secret."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.errors import ConfigurationError, NotAuthenticated, TsuzukiError, UsageError
from tsuzuki.model.webhook_signatures import WebhookDelivery, WebhookKind, verify

NOW = datetime(2021, 2, 25, 12, 0, tzinfo=UTC)
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_KEY = "whsec_" + base64.b64encode(b"an older secret of it").decode()
BODY = b'{"test": 2432232314}'
SECRET = "it's a secret"


def standard_headers(
    body: bytes = BODY,
    *,
    key: str = KEY,
    delivery_id: str = "msg_1",
    at: datetime = NOW,
    prefix: str = "webhook",
) -> dict[str, str]:
    seconds = str(int(at.timestamp()))
    signed = f"{delivery_id}.{seconds}.".encode() + body
    digest = hmac.digest(base64.b64decode(key.removeprefix("whsec_")), signed, "sha256")
    return {
        f"{prefix}-id": delivery_id,
        f"{prefix}-timestamp": seconds,
        f"{prefix}-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def github_headers(body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    about = {"X-GitHub-Delivery": "72d3162e-cc78-11e3", "X-GitHub-Event": "push"}
    return {"X-Hub-Signature-256": f"sha256={digest}", **about}


def check(
    kind: WebhookKind,
    headers: dict[str, str],
    body: bytes = BODY,
    *,
    secrets: tuple[str, ...] = (SECRET,),
    now: datetime = NOW,
) -> WebhookDelivery:
    return verify(kind, secrets=secrets, headers=headers, body=body, now=now)


def refusal_of(
    kind: WebhookKind,
    headers: dict[str, str],
    body: bytes = BODY,
    *,
    secrets: tuple[str, ...] = (SECRET,),
    now: datetime = NOW,
) -> str:
    with pytest.raises(TsuzukiError) as refused:
        check(kind, headers, body, secrets=secrets, now=now)
    told = f"{refused.value!r} {refused.value.as_dict()}"
    assert not any(secret in told for secret in secrets if secret)
    return refused.value.specific_code


STANDARD, GITHUB, GITLAB, HEADER = WebhookKind


def test_the_published_example_of_standard_webhooks_is_accepted() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    at = datetime.fromtimestamp(1614265330, UTC)
    delivery = check(STANDARD, headers, secrets=(KEY,), now=at)
    assert delivery == WebhookDelivery(id="msg_p5jXN8AQM9LWM0D4loKWxJek", event=None)


def test_the_published_example_of_github_is_accepted() -> None:
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {"x-hub-signature-256": f"sha256={digest}"}
    assert check(GITHUB, headers, b"Hello, World!", secrets=("It's a Secret to Everybody",))


@pytest.mark.parametrize("prefix", ["webhook", "Webhook", "svix"])
def test_headers_are_found_in_any_case_and_by_their_older_name(prefix: str) -> None:
    assert check(STANDARD, standard_headers(prefix=prefix), secrets=(KEY,)).id == "msg_1"


def test_one_of_several_signatures_and_one_of_two_secrets_is_enough() -> None:
    new, old = standard_headers(), standard_headers(key=OLD_KEY)
    both = {**new, "webhook-signature": f"{old['webhook-signature']} {new['webhook-signature']}"}
    assert check(STANDARD, both, secrets=(KEY,))
    assert check(STANDARD, old, secrets=(KEY, OLD_KEY))
    assert refusal_of(STANDARD, old, secrets=(KEY,)) == "signature_wrong"
    assert check(GITHUB, github_headers(secret="older"), secrets=(SECRET, "older"))
    assert check(GITLAB, {"X-Gitlab-Token": "older"}, secrets=(SECRET, "older"))


def test_signatures_of_other_kinds_are_passed_over() -> None:
    headers = standard_headers()
    right = headers["webhook-signature"]
    asymmetric = {**headers, "webhook-signature": f"v1a,{right[3:]} {right}"}
    assert check(STANDARD, asymmetric, secrets=(KEY,))
    for wrong in (right.replace("v1,", "v2,"), right[3:], "v1,", "v1,é", "v1"):
        changed = {**headers, "webhook-signature": wrong}
        assert refusal_of(STANDARD, changed, secrets=(KEY,)) == "signature_wrong"


def test_five_minutes_are_the_limit_in_both_directions() -> None:
    headers = standard_headers()
    for seconds in (-300, 300):
        assert check(STANDARD, headers, secrets=(KEY,), now=NOW + timedelta(seconds=seconds))
    for seconds in (-301, 301, 86_400):
        later = NOW + timedelta(seconds=seconds)
        assert refusal_of(STANDARD, headers, secrets=(KEY,), now=later) == "signature_stale"


def test_id_time_and_body_are_signed() -> None:
    headers = standard_headers()
    later = str(int(NOW.timestamp()) + 1)
    for changed in ({"webhook-id": "msg_2"}, {"webhook-timestamp": later}):
        assert refusal_of(STANDARD, {**headers, **changed}, secrets=(KEY,)) == "signature_wrong"
    assert refusal_of(STANDARD, headers, BODY + b" ", secrets=(KEY,)) == "signature_wrong"
    assert refusal_of(GITHUB, github_headers(), BODY + b"\n") == "signature_wrong"
    for missing in headers:
        less = {name: value for name, value in headers.items() if name != missing}
        assert refusal_of(STANDARD, less, secrets=(KEY,)) == "signature_missing"


def test_github_and_gitlab_say_their_id_and_event() -> None:
    assert check(GITHUB, github_headers()) == WebhookDelivery(id="72d3162e-cc78-11e3", event="push")
    headers = {
        "X-Gitlab-Token": SECRET,
        "X-Gitlab-Event": "Push Hook",
        "Idempotency-Key": "f5e5f430",
    }
    assert check(GITLAB, headers) == WebhookDelivery(id="f5e5f430", event="Push Hook")
    del headers["Idempotency-Key"]  # GitLab before 17.4
    assert check(GITLAB, headers).id is None


def test_a_shared_secret_stands_in_the_header_that_is_named() -> None:
    headers = {"X-My-Secret": SECRET, "Idempotency-Key": "1"}
    given = {"secrets": [SECRET], "headers": headers, "body": BODY, "now": NOW}
    assert verify(HEADER, **given, secret_header="x-my-secret").id == "1"  # type: ignore[arg-type]
    assert refusal_of(HEADER, headers) == "signature_missing"


@pytest.mark.parametrize("kind", WebhookKind)
def test_without_proof_or_with_an_empty_one_nothing_is_accepted(kind: WebhookKind) -> None:
    names = ["X-Gitlab-Token", "X-Webhook-Secret", "X-Hub-Signature-256", "webhook-signature"]
    assert refusal_of(kind, {}, secrets=(KEY,)) == "signature_missing"
    assert refusal_of(kind, dict.fromkeys(names, ""), secrets=(KEY,)) == "signature_missing"
    for secrets in ((), ("",), (KEY, "")):
        with pytest.raises(ConfigurationError):
            check(kind, dict.fromkeys(names, ""), secrets=secrets)


def test_a_standard_secret_that_is_no_base64_is_a_mistake_of_the_configuration() -> None:
    for secret in ("whsec_not base64!", "plain secret"):
        assert refusal_of(STANDARD, standard_headers(), secrets=(secret,)) == "webhook_secret"
    with pytest.raises(ConfigurationError):
        check(STANDARD, standard_headers(), secrets=("whsec_",))


@pytest.mark.parametrize("delivery_id", ["a b", "x" * 201, "a\x00b", "é"])
def test_an_id_that_cannot_be_a_key_is_refused(delivery_id: str) -> None:
    with pytest.raises(UsageError) as refused:
        check(GITLAB, {"X-Gitlab-Token": SECRET, "Idempotency-Key": delivery_id})
    assert refused.value.specific_code == "webhook_id"


@given(body=st.binary(), headers=st.dictionaries(st.text(), st.text()), value=st.text())
def test_no_text_in_place_of_a_signature_is_accepted(
    body: bytes, headers: dict[str, str], value: str
) -> None:
    names = ["webhook-id", "webhook-timestamp", "webhook-signature", "X-Hub-Signature-256"]
    given = {**headers, **dict.fromkeys([*names, "X-Gitlab-Token", "X-Webhook-Secret"], value)}
    for kind in WebhookKind:
        with pytest.raises(NotAuthenticated):
            check(kind, given, body, secrets=(KEY,))
