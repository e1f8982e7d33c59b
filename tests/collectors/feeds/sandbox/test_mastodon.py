"""The stand-in for Mastodon, asked by Mastodon.py: statuses, pages, the instance, media, tokens and limits."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from hypothesis import given, strategies
from mastodon import Mastodon as Client
from mastodon import errors

from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, Mastodon, MastodonSettings, mastodon
from tsuzuki.collectors.feeds.sandbox.mastodon.text import status_length
from tsuzuki.model.clock import ManualClock
from tsuzuki.sandbox.server import StandIn

LINK = "https://press.example/2026/11/bridge.html?lang=ja&page=2"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def application(clock: ManualClock) -> Mastodon:
    return mastodon(clock=clock)


@pytest.fixture
def server(application: Mastodon) -> Iterator[StandIn]:
    with StandIn(application) as server:
        yield server


@pytest.fixture
def client(server: StandIn) -> Iterator[Client]:
    client = client_of(server)
    yield client
    client.session.close()


def client_of(server: StandIn, token: str = TOKEN) -> Client:
    return Client(
        api_base_url=server.url,
        access_token=token,
        ratelimit_method="throw",
        version_check_mode="none",
        request_timeout=10,
    )


def call(server: StandIn, method: str, path: str, body: Any = None, token: str = TOKEN) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    with urlopen(Request(server.url + path, data=data, method=method, headers=headers)) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def test_a_status_keeps_what_was_posted(application: Mastodon, client: Client) -> None:
    posted = client.status_post(
        f"橋が開いた。 {LINK}",
        visibility="unlisted",
        language="ja",
        spoiler_text="Press",
        idempotency_key="k1",
    )
    (stored,) = application.statuses
    assert (stored.text, stored.idempotency_key) == (f"橋が開いた。 {LINK}", "k1")
    found = client.status(posted.id)
    assert (found.visibility, found.language, found.spoiler_text) == ("unlisted", "ja", "Press")
    assert found.sensitive is True
    assert found.account.id == client.account_verify_credentials().id


def test_links_are_hrefs_in_the_content_and_in_the_card(client: Client) -> None:
    posted = client.status_post(f"A bridge <opens> & more.\n\nSee {LINK}.\nNow")
    assert posted.card is None
    found = client.status(posted.id)
    href = LINK.replace("&", "&amp;")
    assert found.content.startswith("<p>A bridge &lt;opens&gt; &amp; more.</p><p>See <a href=")
    assert f'href="{href}" target="_blank" rel="nofollow noopener"' in found.content
    assert found.content.endswith("</a>.<br />Now</p>")
    assert found.card.url == LINK


def test_mentions_and_hashtags_are_found(application: Mastodon, client: Client) -> None:
    posted = client.status_post("@ann and @bob@far.example say #橋 mail@example.com x/@no")
    assert [one.acct for one in posted.mentions] == ["ann", "bob@far.example"]
    assert [one.name for one in posted.tags] == ["橋"]


def test_json_is_taken_as_a_form_is(server: StandIn, application: Mastodon) -> None:
    body = {"status": "Hello", "visibility": "private", "sensitive": True, "media_ids": []}
    assert call(server, "POST", "/api/v1/statuses", body)["visibility"] == "private"
    assert application.statuses[0].shown.sensitive


def test_an_edit_replaces_the_text_and_keeps_its_history(client: Client) -> None:
    posted = client.status_post("A brigde opens.")
    client.status_update(posted.id, "A brigde opens.")
    assert client.status(posted.id).edited_at is None
    edited = client.status_update(posted.id, "A bridge opens.", spoiler_text="Press")
    assert (edited.id, edited.content) == (posted.id, "<p>A bridge opens.</p>")
    assert client.status(posted.id).edited_at is not None
    assert [one.content for one in client.status_history(posted.id)] == [
        "<p>A brigde opens.</p>",
        "<p>A bridge opens.</p>",
    ]
    assert client.status_source(posted.id).text == "A bridge opens."


def test_a_reply_hangs_under_its_status(client: Client) -> None:
    first = client.status_post("First")
    reply = client.status_post("Second", in_reply_to_id=first.id)
    assert reply.in_reply_to_id == first.id
    assert [one.id for one in client.status_context(first.id).descendants] == [reply.id]
    assert [one.id for one in client.status_context(reply.id).ancestors] == [first.id]
    with pytest.raises(errors.MastodonNotFoundError, match="does not appear to exist"):
        client.status_post("Third", in_reply_to_id=12345)


def test_a_deleted_status_is_gone(application: Mastodon, client: Client) -> None:
    posted = client.status_post("Hello")
    assert client.status_delete(posted.id).text == "Hello"
    with pytest.raises(errors.MastodonNotFoundError):
        client.status(posted.id)
    assert application.statuses == []


@pytest.fixture
def ids(client: Client) -> list[str]:
    """Ids of 45 statuses, oldest first."""
    return [str(client.status_post(f"Status {number}").id) for number in range(45)]


def listed(client: Client, **options: Any) -> list[str]:
    account = client.account_verify_credentials()
    return [str(one.id) for one in client.account_statuses(account, **options)]


def test_pages_go_back_by_link(client: Client, ids: list[str]) -> None:
    account = client.account_verify_credentials()
    page = client.account_statuses(account, limit=100)
    assert [str(one.id) for one in page] == ids[:-41:-1]
    older = client.fetch_next(page)
    assert [str(one.id) for one in older] == ids[4::-1]
    assert client.fetch_next(older) is None
    assert len(client.account_statuses(account)) == 20


def test_ids_bound_a_page_in_three_ways(client: Client, ids: list[str]) -> None:
    assert listed(client, max_id=ids[10], limit=3) == ids[9:6:-1]
    assert listed(client, since_id=ids[10], limit=3) == ids[:41:-1]
    assert listed(client, min_id=ids[10], limit=3) == ids[13:10:-1]


def test_reblogs_and_replies_are_left_out_on_request(client: Client) -> None:
    first = client.status_post("First")
    reply = client.status_post("Second", in_reply_to_id=first.id)
    reblog = client.status_reblog(first.id)
    assert client.status(reblog.id).reblog.id == first.id
    assert listed(client, exclude_reblogs=True) == [str(reply.id), str(first.id)]
    assert listed(client, exclude_replies=True) == [str(reblog.id), str(first.id)]


def test_a_stranger_sees_what_is_public(server: StandIn, client: Client) -> None:
    for visibility in ("public", "unlisted", "private", "direct"):
        client.status_post(visibility, visibility=visibility)
    path = f"/api/v1/accounts/{client.account_verify_credentials().id}/statuses"
    seen = call(server, "GET", path, token="unknown")
    assert [one["visibility"] for one in seen] == ["unlisted", "public"]


def test_the_instance_tells_its_limits(application: Mastodon, client: Client) -> None:
    application.settings.max_characters = 1234
    second = client.instance_v2().configuration
    first = client.instance_v1().configuration
    assert second.statuses.max_characters == first.statuses.max_characters == 1234
    assert second.statuses.characters_reserved_per_url == 23
    assert second.media_attachments.description_limit == 1500


@pytest.mark.parametrize(
    ("text", "spoiler_text", "length"),
    [
        ("abc", "", 3),
        ("abc", "de", 5),
        (LINK, "", 23),
        ("「https://press.example/bridge」", "", 25),
        (f"「{LINK}」", "", 24),  # a query takes the bracket with it
        ("https://press.example/橋/開通。", "", 23),
        ("https://press.example/a_(b)", "", 23),
        ("(https://press.example/a)", "", 25),
        ("https://press.exampleの橋", "", 25),
        ("ahttps://press.example/a/b/c", "", 28),
        ("http://press_office.example", "", 27),  # no host name
        ("http://press_office.state.example", "", 23),
        ("@ann@far.example hi", "", 7),
        ("mail ann@far.example", "", 20),
        ("👨‍👩‍👧‍👦🇯🇵e\u0301", "", 3),
    ],
)
def test_the_length_is_counted_as_the_server_counts(
    application: Mastodon, client: Client, text: str, spoiler_text: str, length: int
) -> None:
    application.settings.max_characters = length
    client.status_post(text, spoiler_text=spoiler_text)
    application.settings.max_characters = length - 1
    with pytest.raises(errors.MastodonAPIError, match="character limit") as caught:
        client.status_post(text, spoiler_text=spoiler_text)
    assert caught.value.args[1] == 422


WORDS = [
    "橋が",
    "a",
    "👩🏽‍🚀",
    "e\u0301",
    "#tag",
    "https://press.go.jp/a?b=c&d=1",
    "@ann@far.example",
    "@bob",
    "한국",
    "שלום",
    ".",
    "🇯🇵",
]


@given(words=strategies.lists(strategies.sampled_from(WORDS)), gap=strategies.sampled_from(" \n"))
def test_the_length_is_what_the_client_counts(words: list[str], gap: str) -> None:
    text = gap.join(words)
    assert status_length(text, "CW") == Client.get_status_length(text, "CW")


@pytest.mark.parametrize("fields", [{"status": "  "}, {"status": "x", "visibility": "secret"}])
def test_what_is_not_valid_is_refused(server: StandIn, fields: dict[str, str]) -> None:
    with pytest.raises(HTTPError) as caught:
        call(server, "POST", "/api/v1/statuses", fields)
    with caught.value:
        assert caught.value.code == 422


def test_media_are_attached_once_they_are_processed(client: Client) -> None:
    media = client.media_post(b"image", mime_type="image/png", description="A red bridge")
    assert media.url is None
    with pytest.raises(errors.MastodonAPIError, match="not finished processing"):
        client.status_post("Look", media_ids=[media])
    assert client.media(media).url is None
    assert client.media(media).url is not None
    client.media_update(media, description="A long red bridge")
    posted = client.status_post("Look", media_ids=[media])
    assert posted.media_attachments[0].description == "A long red bridge"
    with pytest.raises(errors.MastodonAPIError, match="already attached"):
        client.status_post("Look again", media_ids=[media])


def test_media_of_the_wrong_kind_or_size_are_refused(application: Mastodon, client: Client) -> None:
    application.settings.image_size_limit = 4
    application.settings.description_limit = 3
    for data, kind, description in (
        (b"text", "text/plain", "x"),
        (b"12345", "image/png", "x"),
        (b"123", "image/png", "long"),
    ):
        with pytest.raises(errors.MastodonAPIError) as caught:
            client.media_post(data, mime_type=kind, description=description)
        assert caught.value.args[1] == 422


def test_tokens_and_accounts_may_be_refused(server: StandIn, application: Mastodon) -> None:
    client = client_of(server, "wrong")
    with pytest.raises(errors.MastodonUnauthorizedError, match="access token is invalid"):
        client.account_verify_credentials()
    client.session.close()
    client, account = client_of(server), application.account
    account.token_revoked = True
    with pytest.raises(errors.MastodonUnauthorizedError, match="was revoked"):
        client.status_post("x")
    account.token_revoked, account.suspended = False, True
    for action in (client.account_verify_credentials, lambda: client.status_post("x")):
        with pytest.raises(errors.MastodonAPIError, match="currently disabled") as caught:
            action()
        assert caught.value.args[1] == 403
    account.suspended, account.token_can_write = False, False
    assert client.account_verify_credentials().username == "sandbox"
    with pytest.raises(errors.MastodonAPIError, match="outside the authorized scopes"):
        client.status_post("x")
    client.session.close()


@pytest.mark.parametrize("epoch", [False, True])
def test_posts_are_limited_until_the_period_ends(
    application: Mastodon, client: Client, clock: ManualClock, epoch: bool
) -> None:
    application.settings.posts_max, application.settings.reset_as_epoch = 2, epoch
    for _ in range(2):
        client.status_post("x")
    assert client.ratelimit_remaining == 0
    with pytest.raises(errors.MastodonRatelimitError):
        client.status_post("x")
    assert client.ratelimit_reset is not None
    left = client.ratelimit_reset - clock.now().timestamp()
    assert 0 < left <= 3 * 60 * 60 + 2
    client.account_verify_credentials()  # reading goes on
    clock.advance(timedelta(hours=3).total_seconds())
    client.status_post("x")
    assert len(application.statuses) == 3


def test_requests_are_limited_too(application: Mastodon, client: Client) -> None:
    application.settings.requests_max = 2
    client.instance_v2()
    client.account_verify_credentials()
    with pytest.raises(errors.MastodonRatelimitError):
        client.account_verify_credentials()


def test_settings_and_statuses_are_to_be_had_over_http(
    server: StandIn, application: Mastodon, client: Client
) -> None:
    changed = {"key_mode": "ignored", "max_characters": 9, "suspended": True}
    shown = call(server, "PATCH", "/_sandbox/settings", changed)
    assert {name: shown[name] for name in changed} == changed
    assert application.account.suspended
    call(server, "PATCH", "/_sandbox/settings", {"suspended": False})
    client.status_post("Hello", idempotency_key="k1")
    (stored,) = call(server, "GET", "/_sandbox/statuses")
    assert (stored["text"], stored["idempotency_key"]) == ("Hello", "k1")


@pytest.mark.parametrize(
    "body",
    [
        {"key_mode": "odd"},
        {"max_chars": 9},
        [],
        {"posts_max": 1, "max_characters": "9"},
        {"posts_max": 1, "suspended": "no"},
    ],
)
def test_what_is_no_setting_is_told_and_changes_nothing(
    server: StandIn, application: Mastodon, body: Any
) -> None:
    with pytest.raises(HTTPError) as caught:
        call(server, "PATCH", "/_sandbox/settings", body)
    with caught.value as answer:
        assert "max_characters" in json.load(answer)["message"]
    assert application.settings == MastodonSettings()
    assert not application.account.suspended
