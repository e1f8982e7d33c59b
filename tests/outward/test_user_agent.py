"""What every request says of who sends it, asked over real HTTP."""

import re
from collections.abc import Callable, Iterator
from email.message import Message
from importlib.metadata import version

import pytest

from support.moving_clock import MovingClock
from tsuzuki.collectors.commits.sources.gitlab_client import GitLabClient, GitLabServer
from tsuzuki.collectors.feeds.channels.mastodon import MastodonChannel
from tsuzuki.outward import user_agent as user_agent_module
from tsuzuki.outward.http import HttpClient
from tsuzuki.outward.safe_download import SafeDownloader
from tsuzuki.outward.user_agent import set_contact, user_agent
from tsuzuki.sandbox.exchange import Response, StandInRequest, json_response
from tsuzuki.sandbox.server import StandIn

CONTACT = "me@example.org"
EXPECTED = re.compile(rf"tsuzuki/{re.escape(version('tsuzuki'))} \((\+https?://\S+; )?{CONTACT}\)")


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(_empty) as server:
        yield server


def _empty(_request: StandInRequest) -> Response:
    return json_response([])


@pytest.fixture
def contact() -> Iterator[None]:
    set_contact(CONTACT)
    yield
    set_contact(None)


def download(url: str) -> None:
    with SafeDownloader(
        clock=MovingClock(), timeout_seconds=5, private_hosts=["127.0.0.1"]
    ) as downloader:
        downloader.get(f"{url}/feed.xml", bytes_max=1_000)


def ask(url: str) -> None:
    with HttpClient(service="it", base_url=url, clock=MovingClock()) as client:
        client.get("/books", {})


def ask_mastodon(url: str) -> None:
    channel = MastodonChannel(base_url=url, access_token="t", clock=MovingClock(), seconds=5)
    channel._client.timeline_public()


def ask_gitlab(url: str) -> None:
    client = GitLabClient(GitLabServer(url=url, token="t", timeout_seconds=5), MovingClock())
    client._connect().http_get("/projects")


@pytest.mark.usefixtures("contact")
@pytest.mark.parametrize("fetch", [download, ask, ask_mastodon, ask_gitlab])
def test_every_request_names_version_and_contact(
    server: StandIn, fetch: Callable[[str], None]
) -> None:
    fetch(server.url)
    sent = {seen.request.headers["User-Agent"] for seen in server.requests}
    assert sent
    assert all(EXPECTED.fullmatch(one) for one in sent), sent


def test_the_homepage_of_the_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    described = Message()
    described["Version"] = "1.2.3"
    described["Project-URL"] = "Changes, https://a.example/changes"
    described["Project-URL"] = "Homepage, https://a.example/"
    monkeypatch.setattr(user_agent_module, "metadata", lambda _name: described)
    user_agent_module._product.cache_clear()
    assert user_agent() == "tsuzuki/1.2.3 (+https://a.example/)"
    monkeypatch.undo()
    user_agent_module._product.cache_clear()
    assert user_agent().startswith(f"tsuzuki/{version('tsuzuki')}")
