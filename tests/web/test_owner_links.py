"""A server on loopback without users: its owner signs in by a one-time link, and no other account of the machine."""

import html
import logging
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.event_stream import EventReader
from support.moving_clock import MovingClock
from support.threads import at_once
from support.web_client import Client, HttpAnswer
from tsuzuki.model.access import OwnerMode, Role
from tsuzuki.services.access.owner_links import LINK_SECONDS, SESSION_SECONDS
from tsuzuki.web.security.authentication import PROXY_HEADERS
from tsuzuki.web.server import Address, WebServer
from tsuzuki.wiring.application import Application, opened

FORM = "application/x-www-form-urlencoded"
PASSWORD = "correct horse battery"
LINK = "/sign-in/link"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A server, and the application whose database it shares with the command line."""

    application: Application
    url: str
    clock: MovingClock

    def client(self) -> Client:
        return Client(self.url, None)

    def token(self) -> str:
        return self.application.owner_links.create(actor="cli:ada").secret

    def open(self, token: str, **headers: str) -> HttpAnswer:
        sent = {"Content-Type": FORM, "Sec-Fetch-Site": "same-origin", **headers}
        raw = urlencode({"token": token}).encode()
        return self.client().request("POST", LINK, headers=sent, raw=raw)

    def cookie(self) -> Mapping[str, str]:
        """Of a browser that opened a link."""
        return cookie_of(self.open(self.token()))

    def status(self, path: str = "jobs", **headers: str) -> int:
        return self.client().request("GET", path, headers=headers).status


def cookie_of(answer: HttpAnswer) -> Mapping[str, str]:
    assert (answer.status, answer.headers["location"]) == (303, "/")
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    clock = MovingClock()
    with opened(environ={}, cwd=tmp_path, clock=clock) as application:
        server = WebServer(application, Address(host="127.0.0.1", port=0))
        server.start()
        yield Site(application=application, url=server.url, clock=clock)
        server.stop()


@pytest.mark.parametrize(
    "path",
    ["jobs", "jobs/x", "runs", "stream?topics=runs", "me", "tokens", "users", "/runs.json"],
)
def test_another_account_of_the_machine_is_refused(site: Site, path: str) -> None:
    answer = site.client().get(path)
    assert (answer.status, answer.code) == (401, "owner_link_needed")


def test_another_account_cannot_define_a_job(site: Site) -> None:
    body = {"name": "id", "definition": {"command": ["id"]}}
    for path in ("jobs", "/mcp", "tokens", "users"):
        assert site.client().post(path, body).status == 401
    assert site.application.jobs.find() == []


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json"])
def test_programs_that_watch_the_process_need_no_credentials(site: Site, path: str) -> None:
    assert site.status(path) == 200


def test_metrics_need_a_token_with_the_first_user_and_through_a_proxy(site: Site) -> None:
    for header in PROXY_HEADERS:
        assert site.status("/metrics", **{header: "192.0.2.1"}) == 401
    site.application.users.add("ada", PASSWORD, role=Role.ADMIN, by=site.application.principal)
    assert site.status("/metrics") == 401


@pytest.mark.parametrize("path", ["/", "/runs", "/jobs?state=x", "/tokens/new"])
def test_a_browser_that_is_not_signed_in_is_told_how_to_get_a_link(site: Site, path: str) -> None:
    page = site.client().get(path, Accept="text/html")
    assert (page.status, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    address = site.url.removeprefix("http://")
    assert f"tsuzuki web link --listen {address}" in _text(page)


def _text(page: HttpAnswer) -> str:
    return page.body.decode().replace('<span class="option">', "").replace("</span>", "")


def test_a_link_starts_a_session_that_may_do_everything(site: Site) -> None:
    answer = site.open(site.token())
    name, *parts = answer.headers["set-cookie"].split("; ")
    assert name.startswith("tsuzuki-")
    assert {part.lower() for part in parts} == {
        "httponly",
        "samesite=lax",
        "path=/",
        f"max-age={SESSION_SECONDS:.0f}",
    }
    me = site.client().request("GET", "me", headers=cookie_of(answer)).json
    assert (me["role"], me["actor"].partition(":")[0], me["user"]) == ("admin", "web", None)
    assert site.status("/runs", **cookie_of(answer)) == 200
    actions = [entry.action for entry in site.application.audit.find(limit=10)]
    assert actions == ["owner_link.open", "owner_link.create"]


def test_the_curl_line_of_a_page_works_with_a_token(site: Site) -> None:
    page = site.client().request("GET", "/jobs", headers=site.cookie()).body.decode()
    (line,) = re.findall('data-copy="(curl [^"]*)"', page)
    by = site.application.principal
    made = site.application.tokens.create("curl", role=Role.VIEWER, by=by)
    for token, code in ((made.text, 0), ("tsz_wrong", 22)):
        ended = subprocess.run(
            ["sh", "-c", html.unescape(line).replace("curl ", "curl --silent --fail ", 1)],
            env={**os.environ, "TSUZUKI_TOKEN": token, "no_proxy": "*"},
            capture_output=True,
            check=False,
        )
        assert ended.returncode == code


def test_a_page_of_another_site_cannot_use_the_session(site: Site) -> None:
    headers = {**site.cookie(), "Sec-Fetch-Site": "cross-site"}
    answer = site.client().request("POST", "jobs", {}, headers=headers)
    assert (answer.status, answer.code) == (403, "cross_site")


def test_looking_at_a_link_does_not_use_it_up(site: Site) -> None:
    token = site.token()
    for method in ("GET", "HEAD", "GET"):
        looked = site.client().request(method, f"{LINK}?token={token}")
        assert (looked.status, "set-cookie" in looked.headers) == (200, False)
    assert site.open(token).status == 303


def test_a_link_works_once(site: Site) -> None:
    token = site.token()
    opened = at_once(6, lambda _number: site.open(token).status)
    assert sorted(opened) == [303, 401, 401, 401, 401, 401]


def test_a_browser_that_is_signed_in_may_open_its_link_again(site: Site) -> None:
    token = site.token()
    cookie = cookie_of(site.open(token))
    again = site.open(token, **cookie)
    assert (again.status, again.headers["location"]) == (303, "/")
    assert "set-cookie" not in again.headers
    assert site.status(**cookie) == 200


def test_a_second_link_replaces_the_session_of_a_browser_and_of_no_other(site: Site) -> None:
    one, other = site.cookie(), site.cookie()
    replaced = cookie_of(site.open(site.token(), **one))
    assert [site.status(**cookie) for cookie in (one, other, replaced)] == [401, 200, 200]


@pytest.mark.parametrize("wrong", ["", "x", "tsz_x", "\x00", "x" * 200, "リンク"])
def test_a_wrong_link_is_refused(site: Site, wrong: str) -> None:
    answer = site.open(wrong)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_a_link_and_its_session_expire(site: Site) -> None:
    late, cookie = site.token(), site.cookie()
    site.clock.advance(LINK_SECONDS + 1)
    assert site.open(late).status == 401
    assert site.status(**cookie) == 200
    site.clock.advance(SESSION_SECONDS)
    assert site.status(**cookie) == 401


def test_an_ended_session_leads_a_browser_to_the_page_about_links(site: Site) -> None:
    cookie = site.cookie()
    headers = {**cookie, "Sec-Fetch-Site": "same-origin", "Content-Type": FORM}
    out = site.client().request("POST", "/sign-out", headers=headers, raw=b"")
    assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (303, True)
    assert site.status(**cookie) == 401
    led = site.client().request("GET", "/runs", headers={**cookie, "Accept": "text/html"})
    assert led.status == 303
    page = site.client().get(led.headers["location"], Accept="text/html")
    assert (page.status, "tsuzuki web link" in _text(page)) == (200, True)


def test_the_api_signs_an_owner_out_too(site: Site) -> None:
    cookie = site.cookie()
    headers = {**cookie, "Sec-Fetch-Site": "same-origin"}
    assert site.client().request("POST", "sign-out", headers=headers).status == 204
    assert site.status(**cookie) == 401


def test_with_the_first_user_links_and_their_sessions_end(site: Site) -> None:
    token, cookie = site.token(), site.cookie()
    site.application.users.add("ada", PASSWORD, role=Role.ADMIN, by=site.application.principal)
    assert site.status(**cookie) == 401
    refused = site.open(token)
    assert (refused.status, refused.headers["location"]) == (303, "/sign-in")
    assert "set-cookie" not in refused.headers


def test_an_open_stream_ends_with_the_session(site: Site) -> None:
    cookie = site.cookie()
    with EventReader(site.url, "runs", token=None, cookie=cookie["Cookie"]) as stream:
        headers = {**cookie, "Sec-Fetch-Site": "same-origin"}
        assert site.client().request("POST", "sign-out", headers=headers).status == 204
        while stream.read() is not None:
            pass


def test_a_second_server_on_the_database_knows_the_session_and_a_restarted_one_too(
    site: Site,
) -> None:
    token, cookie = site.token(), site.cookie()
    other = WebServer(site.application, Address(host="127.0.0.1", port=0))
    other.start()
    try:
        there = Site(application=site.application, url=other.url, clock=site.clock)
        assert there.status(**cookie) == 200
        assert there.open(token).status == 303
    finally:
        other.stop()
    assert site.open(token).status == 401


def test_a_server_that_others_reach_takes_no_link(site: Site) -> None:
    server = WebServer(
        site.application, Address(host="127.0.0.1", port=0), trusted_proxies=["127.0.0.1"]
    )
    server.start()
    try:
        there = Site(application=site.application, url=server.url, clock=site.clock)
        answer = there.open(site.token())
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
        assert there.status(**site.cookie()) == 401
        assert there.status("/metrics") == 401
    finally:
        server.stop()


def test_no_secret_of_a_link_is_logged_or_stored(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        token = site.token()
        site.client().get(f"{LINK}?token={token}")
        cookie = cookie_of(site.open(token))["Cookie"].partition("=")[2]
        site.open(token)
        site.client().get(f"{LINK}/nowhere?token={token}")
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if ".db" in path.name)
    seen = f"{caplog.text} {''.join(capfd.readouterr())}"
    for secret in (token, cookie):
        assert secret not in seen
        assert secret.encode() not in files


def test_with_the_owner_mode_open_this_machine_needs_no_credentials(site: Site) -> None:
    server = WebServer(
        site.application, Address(host="127.0.0.1", port=0), owner_mode=OwnerMode.OPEN
    )
    server.start()
    try:
        there = Site(application=site.application, url=server.url, clock=site.clock)
        assert there.status() == 200
        for header in PROXY_HEADERS:
            assert there.status(**{header: "192.0.2.1"}) == 401
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("file", "environ", "status"),
    [
        ("web: {owner_mode: open}\n", {}, 200),
        ("web: {owner_mode: link}\n", {}, 401),
        ("", {"TSUZUKI_WEB_OWNER_MODE": "open"}, 200),
        ("", {}, 401),
    ],
)
def test_the_owner_mode_is_configured(
    tmp_path: Path, file: str, environ: dict[str, str], status: int
) -> None:
    (tmp_path / "tsuzuki.yaml").write_text(file, encoding="utf-8")
    with opened(environ=environ, cwd=tmp_path) as application:
        server = WebServer(application, Address(host="127.0.0.1", port=0))
        server.start()
        try:
            assert Client(server.url, None).get("jobs").status == status
        finally:
            server.stop()
