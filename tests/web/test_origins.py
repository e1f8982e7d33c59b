"""Which requests are taken at all: by Host, by where a browser sends them from, and by their credentials."""

from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest

from support.web_client import (
    SECURE_SESSION_COOKIE,
    SESSION_COOKIE,
    TIMEOUT_SECONDS,
    Client,
    FixedAuthenticator,
    Served,
)
from tsuzuki.model.errors import NotAuthenticated, UsageError
from tsuzuki.services.access.sessions import SignInPlace
from tsuzuki.web.security.guard import SECURITY_HEADERS
from tsuzuki.web.server import Address, WebServer, parse_proxies

HERE = "http://{host}"
CHANGE = "leader/step-down"
"""Answers 409 when it is let in: there is no leader here."""


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:1234", 200),
        ("[::1]:8420", 200),
        ("attacker.example", 421),
        ("127.0.0.1.attacker.example", 421),
        ("localhost.attacker.example:8420", 421),
        ("", 421),
        ("[::1].attacker.example", 421),
        ("[::1]attacker.example:80", 421),
        ("localhost@attacker.example", 421),
        ("attacker.example@localhost", 421),
        ("localhost:80:80", 421),
        ("localhost/", 421),
        ("LOCALHOST.", 200),
    ],
)
def test_a_name_that_is_not_ours_is_refused(client: Client, host: str, status: int) -> None:
    assert client.get("/livez", Host=host).status == status


def test_two_names_are_none(client: Client) -> None:
    with closing(HTTPConnection(urlsplit(client.url).netloc, timeout=TIMEOUT_SECONDS)) as line:
        line.putrequest("GET", "/livez", skip_host=True)
        line.putheader("Host", "localhost")
        line.putheader("Host", "attacker.example")
        line.endheaders()
        assert line.getresponse().status in (400, 421)


@pytest.mark.parametrize(
    "path",
    [
        "//attacker.example/",
        "/%2f%2fattacker.example/",
        "/docs/",
        "/docs/%0d%0aSet-Cookie:%20a=b",
        "/api/v1/jobs/%0d%0aSet-Cookie:%20a=b",
        "/api/v1/jobs/hello/",
        "/hooks/%0d%0aLocation:%20https:%2f%2fattacker.example",
    ],
)
def test_no_path_sets_a_header_or_leads_elsewhere(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status in (404, 405)
    assert not {"location", "set-cookie"} & answer.headers.keys()


def test_no_value_of_a_request_comes_back_in_a_header(client: Client) -> None:
    name = "a\r\nSet-Cookie: a=b"
    made = client.post("jobs", {"name": name, "definition": {"command": ["true"]}})
    assert (made.status, made.json["problems"][0]["where"]) == (422, "body.name")
    assert "set-cookie" not in made.headers
    waited = client.post("jobs/hello/runs", Prefer='wait=0, "x: y"; a="b"')
    assert "preference-applied" not in waited.headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/nowhere", f"/api/v1/{CHANGE}"])
def test_no_page_of_another_site_can_ask_for_a_change(client: Client, site: str, path: str) -> None:
    answer = client.as_(None).post(
        path, Sec_Fetch_Site=site, Cookie=f"{SESSION_COOKIE}=admin", Host="localhost"
    )
    assert (answer.status, answer.code) == (403, "cross_site")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Cookie": f"{SESSION_COOKIE}=admin", "Sec-Fetch-Site": "same-origin"}, 409),
        ({"Cookie": f"{SESSION_COOKIE}=admin", "Sec-Fetch-Site": "none"}, 409),
        ({"Cookie": f"{SESSION_COOKIE}=admin", "Origin": "http://localhost:9"}, 409),
        ({"Cookie": f"{SESSION_COOKIE}=admin", "Origin": "http://localhost:8"}, 403),
        ({"Cookie": f"{SESSION_COOKIE}=admin", "Origin": "https://localhost:9"}, 403),
        ({"Cookie": f"{SESSION_COOKIE}=admin", "Origin": "null"}, 403),
        ({"Cookie": f"{SESSION_COOKIE}=admin"}, 403),
        # What the browser says about the site counts, and not an origin that a page could not forge anyway.
        (
            {
                "Cookie": f"{SESSION_COOKIE}=admin",
                "Sec-Fetch-Site": "cross-site",
                "Origin": "http://localhost:9",
            },
            403,
        ),
        ({"Authorization": "Bearer admin"}, 409),
        ({"Authorization": "Bearer admin", "Origin": "https://attacker.example"}, 409),
        (
            {
                "Authorization": "Bearer admin",
                "Cookie": f"{SESSION_COOKIE}=admin",
                "Sec-Fetch-Site": "cross-site",
            },
            403,
        ),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://attacker.example"}, 403),
        ({}, 401),
    ],
)
def test_a_change_needs_our_own_origin_or_a_token_alone(
    client: Client, headers: dict[str, str], status: int
) -> None:
    answer = client.as_(None).request("POST", CHANGE, headers={"Host": "localhost:9", **headers})
    assert answer.status == status, answer.body


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", "Basic YWRtaW46", "bearer", "Bearer admin admin"]
)
def test_wrong_credentials_are_never_taken_for_none(client: Client, header: str) -> None:
    answer = client.as_(None).get("workers", Authorization=header)
    assert (answer.status, answer.code) == (401, "not_authenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_wrong_token_is_refused_even_beside_a_right_session(client: Client) -> None:
    answer = client.as_("wrong").get("workers", Cookie=f"{SESSION_COOKIE}=admin")
    assert answer.status == 401


@pytest.mark.parametrize("path", ["/livez", "/nowhere", "/api/v1/workers", "/docs"])
def test_every_answer_has_its_security_headers(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert {name.lower() for name in SECURITY_HEADERS} <= headers.keys()
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "server" not in headers


def test_an_answer_allows_no_other_origin(client: Client) -> None:
    headers = client.get("workers", Origin="https://attacker.example").headers
    assert not any(name.startswith("access-control") for name in headers)


PASSED_ON = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
FROM_OUR_PAGE = {"Cookie": f"{SECURE_SESSION_COOKIE}=admin", "Origin": "https://jobs.example"}


@pytest.fixture
def behind_proxy(served: Served) -> Iterator[WebServer]:
    """A server that was told of a proxy on this machine."""
    server = WebServer(
        served.application,
        Address(host="127.0.0.1", port=0),
        allowed_hosts=["jobs.example"],
        trusted_proxies=["127.0.0.0/8"],
        authenticator=FixedAuthenticator(),
    )
    server.start()
    yield server
    server.stop()


def sign_in_addresses(served: Served, client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The address for the sign-in limit, of requests that name one with and without an older hop."""
    seen: list[str] = []

    def sign_in(_name: str, _password: str, *, place: SignInPlace, **_more: Any) -> NoReturn:
        seen.append(place.address or "")
        raise NotAuthenticated("no")

    monkeypatch.setattr(served.application.sessions, "sign_in", sign_in)
    body = {"name": "ada", "password": "correct horse battery"}
    for hops in ("203.0.113.9", "198.51.100.1, 203.0.113.9"):
        headers = {"X-Forwarded-For": hops}
        answer = client.as_(None).request("POST", "sign-in", body, headers=headers)
        assert answer.status == 401
    return seen


def test_a_program_of_this_machine_cannot_claim_another_scheme_or_address(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    headers = {"Host": "localhost", **PASSED_ON, **FROM_OUR_PAGE, "Origin": "https://localhost"}
    answer = client.as_(None).request("POST", CHANGE, headers=headers)
    assert (answer.status, answer.code) == (403, "cross_site")
    assert sign_in_addresses(served, client, monkeypatch) == ["127.0.0.1", "127.0.0.1"]


def test_behind_a_proxy_that_was_named_the_scheme_and_the_address_are_the_clients(
    served: Served, behind_proxy: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(behind_proxy.url, None)
    headers = {"Host": "jobs.example", **PASSED_ON, **FROM_OUR_PAGE}
    assert client.request("POST", CHANGE, headers=headers).status == 409
    headers["X-Forwarded-Proto"] = "http"
    assert client.request("POST", CHANGE, headers=headers).code == "cross_site"
    addresses = sign_in_addresses(served, client, monkeypatch)
    assert addresses == ["203.0.113.9", "203.0.113.9"]


@pytest.mark.parametrize("proxy", ["*", "proxy.example", "10.0.0.1/8"])
def test_what_is_no_address_of_a_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_proxies([proxy])
    assert raised.value.specific_code == "proxy_address"
